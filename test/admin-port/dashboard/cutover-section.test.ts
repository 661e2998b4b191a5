import { expect, test } from '@jest/globals';
import { startAdminPort } from '../../support/admin-port.ts';
import { writeCutover, type PastMode } from './cutover-history.ts';
import { freshPrefix } from '../../support/redis.ts';
import { useCleanup, useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();
const toClose = useCleanup();

/** The section as text, without markup. */
async function sectionOf(past: readonly PastMode[]): Promise<string> {
  const keyPrefix = freshPrefix();
  if (past.length > 0) toClose.push((await writeCutover(store, keyPrefix, past)).close);
  const port = await startAdminPort({ store, keyPrefix });
  toClose.push(port.close);
  const { status, text } = await port.ask('/');
  expect(status).toBe(200);
  const markup = /<section id="cutover".*?<\/section>/s.exec(text)?.[0] ?? '';
  return markup.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
}

const at = (text: string): number => Date.parse(text);

test('the page shows the mode, since when it holds, and the modes before it', async () => {
  const text = await sectionOf([
    { mode: 'shadow', since: at('2026-03-01T09:00Z') },
    { mode: 'mirror', since: at('2026-03-03T10:30Z') },
  ]);
  expect(text).toContain('mirror since 3 Mar 2026, 10:30');
  expect(text).toContain('shadow 1 Mar 2026, 09:00 – 3 Mar 2026, 10:30');
  expect(text).toContain('cutover set mirror');
});

test('the page shows differences, and what prevents the next step, with the remedy', async () => {
  const text = await sectionOf([{ mode: 'shadow', since: at('2026-03-01T09:00Z') }]);
  expect(text).toContain('Users who differ 1');
  expect(text).toContain('Comparisons 3 in this mode; 2 differences');
  expect(text).toMatch(
    /Differences over time \d of [1-3] comparisons? in the hour since .*; at most 2 in an hour of the last 48 hours/,
  );
  expect(text).toContain('Differences by field username 2 avatar.url 1');
  expect(text).toContain('Next step: mirror not ready');
  expect(text).toContain(
    '1 API key that the legacy service accepts is unknown here import it with profile-bridge migrate apply --entities api-keys',
  );
  expect(text).toMatch(/Instances .*-\d+-[0-9a-f]{6} bridge \d+\.\d s ago responding/);
});

test('the page names users whose change could not be adopted, and counts pictures still to be copied', async () => {
  const text = await sectionOf([
    { mode: 'shadow', since: at('2026-03-01T09:00Z') },
    { mode: 'mirror', since: at('2026-03-03T10:30Z') },
  ]);
  expect(text).toContain('Changes in doubt 1 may not have reached Redis');
  expect(text).toContain('Pictures to copy 1,204 at their legacy URLs');
  expect(text).toContain(
    '1 user whose change could not be brought over u3 of acme the legacy service did not show the profile',
  );
  expect(text).not.toContain('Waiting for replay');
});

test('in reverse, the page shows the changes that wait for their replay', async () => {
  const text = await sectionOf([
    { mode: 'shadow', since: at('2026-03-01T09:00Z') },
    { mode: 'reverse', since: at('2026-03-03T10:30Z') },
  ]);
  expect(text).toContain('Waiting for replay 0 all replayed');
  expect(text).not.toContain('Users who differ');
});

test('in native, the page shows how many pictures are still to be copied', async () => {
  const text = await sectionOf([
    { mode: 'shadow', since: at('2026-03-01T09:00Z') },
    { mode: 'native', since: at('2026-03-03T10:30Z') },
  ]);
  expect(text).toContain('Pictures to copy 1,204 at their legacy URLs');
  expect(text).not.toMatch(/Users who differ|Waiting for replay/);
});

test('the page has no cut-over section if there was no cut-over', async () => {
  expect(await sectionOf([])).toBe('');
});
