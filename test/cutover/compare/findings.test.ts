import { expect, test } from '@jest/globals';
import { createFindings } from '../../../src/cutover/compare/findings.ts';
import { forwardedOrganizationsKey, gapsKey, organizationBase } from '../../../src/redis/keys.ts';
import { readDoubts } from '../../../src/cutover/compare/summary.ts';
import type { Log } from '../../../src/log.ts';
import { freshPrefix } from '../../support/redis.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();

test('findings that cannot be saved are kept, and an outage is logged once', async () => {
  const logged: string[] = [];
  const note = (message: string) => void logged.push(message);
  const prefix = freshPrefix();
  let isAway = true;
  const sadd = async (...args: [string, string]) => {
    if (isAway) throw new Error('the store is away');
    return await store.sadd(...args);
  };
  const fragile = Object.create(store, { sadd: { value: sadd } }) as typeof store;
  const findings = createFindings(fragile, prefix, { warn: note, info: note } as unknown as Log);
  findings.recordGap('acme', 'unmarked-change', 0);
  await findings.flush();
  await findings.flush();
  expect(logged).toEqual([
    'gaps and comparisons with the legacy service cannot be saved; the mode cannot be switched until the gaps have been saved',
  ]);
  expect(findings.hasUnsavedGaps()).toBe(true);
  isAway = false;
  await findings.close();
  expect(logged.slice(1)).toEqual(['gaps and comparisons with the legacy service are saved again']);
  expect(await store.hkeys(gapsKey(organizationBase(prefix, 'acme')))).toEqual(['unmarked-change']);
});

test('a gap counts although Redis has lost which organizations were forwarded', async () => {
  const prefix = freshPrefix();
  const findings = createFindings(store, prefix, { warn: () => {}, info: () => {} } as unknown as Log);
  findings.judgeKey({ organizationId: 'acme', sha256: '0', userAgent: '' }, 200, 'known');
  await findings.flush();
  await store.unlink(forwardedOrganizationsKey(prefix));
  findings.recordGap('acme', 'unmarked-change', 0);
  await findings.close();
  expect((await readDoubts(store, prefix)).lastGapAt).toBeGreaterThan(0);
});
