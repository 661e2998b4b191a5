import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { runMigrate } from '../../../src/cli/migrate/run.ts';
import { readCutover } from '../../../src/cutover/switch/registry.ts';
import { cutoverKey } from '../../../src/redis/keys.ts';
import { startProxied, testProxied } from '../../migration/proxied.ts';
import { createTool, writeSource, type Tool } from '../../support/tools/migrate.ts';
import { freshPrefix } from '../../support/redis.ts';
import { valuesOf } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';

/* How an apply of a source that is older than the clean verify on record, or of unknown age, withdraws that verify. */

const store = await useTestStore();
let tool: Tool;
let proxied: Awaited<ReturnType<typeof startProxied>> | undefined;

const user = (userId: string, username?: string) => ({ organizationId: 'acme', userId, username });
const legacy = {
  organizations: [{ organizationId: 'acme' }],
  profiles: [user('ada', 'Ada'), user('bob', 'Bob'), user('eve')],
  denylist: [{ organizationId: 'acme', username: 'root' }],
  'api-keys': [{ organizationId: 'acme', apiKey: 'secret', role: 'admin' }],
};

const isOnRecord = async () => (await readCutover(store, tool.prefix)).verifiedAt !== undefined;

/** Applies and verifies what the legacy service has now. */
async function verifyNow(files: Record<string, readonly object[]> = legacy): Promise<void> {
  const args = ['--source', writeSource(files), '--run', 'now', '--as-of', new Date().toISOString()];
  expect(await tool.json('apply', ...args, '--fresh')).toMatchObject({ exitCode: 0 });
  expect(await tool.json('verify', ...args)).toMatchObject({ exitCode: 0 });
  expect(await isOnRecord()).toBe(true);
}

beforeEach(async () => {
  tool = createTool(undefined, freshPrefix());
  await store.hset(cutoverKey(tool.prefix), { mode: 'mirror', epoch: 1, since: Date.now(), by: 'test' });
});

afterEach(async () => {
  await proxied?.close();
  proxied = undefined;
});

/** The records that clients can reach: not those of an organization that has no settings yet. */
async function records(): Promise<string> {
  const values = Object.entries(await valuesOf(store, `${tool.prefix}{`));
  const [of, settings] = [(key: string) => key.slice(0, key.indexOf('}')), /\}:settings$/];
  const inService = new Set(values.filter(([key]) => settings.test(key)).map(([key]) => of(key)));
  const isRecord = ([key]: [string, string]) =>
    inService.has(of(key)) && !/\}:(claims|renames|cutover:.*)$/.test(key);
  return values
    .filter(isRecord)
    .map((one) => one.join(' '))
    .sort()
    .join('\n');
}

testProxied.each<[what: string, change: Record<string, readonly object[]>, ...options: string[]]>([
  ['changes a profile', { profiles: [user('ada', 'Older'), user('bob', 'Bob'), user('eve')] }],
  ['lets two users swap names', { profiles: [user('ada', 'Bob'), user('bob', 'Ada'), user('eve')] }],
  ['gives a name to another user', { profiles: [user('ada'), user('bob', 'Bob'), user('eve', 'Ada')] }],
  [
    'removes a profile',
    { profiles: [user('ada', 'Ada'), user('bob', 'Bob')] },
    '--prune',
    '--prune-at-most',
    '1',
  ],
  ['denies a name', { denylist: [{ organizationId: 'acme', username: 'admin' }] }],
  ['adds an API key', { 'api-keys': [{ organizationId: 'acme', apiKey: 'older', role: 'admin' }] }],
  ['loads an organization', { profiles: [{ organizationId: 'globex', userId: 'gus', username: 'Gus' }] }],
])(
  'an apply that %s leaves no clean verify on record, wherever it is killed',
  async (_, change, ...options) => {
    await verifyNow();
    const verified = await records();
    const left: { isChanged: boolean; isOnRecord: boolean }[] = [];
    // What a kill at this command would leave.
    proxied = await startProxied(tool, async () => {
      left.push({ isOnRecord: await isOnRecord(), isChanged: (await records()) !== verified });
      return 'forward' as const;
    });
    const older = writeSource({ ...legacy, ...change });
    const args = ['--source', older, '--run', 'older', '--batch', '1', ...options];
    expect(await proxied.tool.json('apply', ...args)).toMatchObject({
      exitCode: 0,
      json: { verifyWithdrawn: true },
    });
    expect(left.filter(({ isChanged }) => isChanged).length).toBeGreaterThan(0);
    expect(left.filter((one) => one.isChanged && one.isOnRecord)).toEqual([]);
    expect(left.some((one) => one.isOnRecord)).toBe(true);
  },
);

test('an apply that is refused, or loses the same name again, withdraws nothing', async () => {
  const twice = { ...legacy, profiles: [...legacy.profiles, user('fay', 'Ada')] };
  const older = ['--source', writeSource(twice), '--run', 'older'];
  await verifyNow({ ...legacy, profiles: [...legacy.profiles, user('fay')] });
  const refused = await tool.json('apply', ...older);
  expect(refused).toMatchObject({ exitCode: 1, json: { state: 'refused' } });
  const again = await tool.json('apply', ...older, '--on-conflict', 'drop-username');
  expect(again).toMatchObject({ exitCode: 0, json: { state: 'applied', created: 0, updated: 0 } });
  for (const { json } of [refused, again]) expect(json).not.toHaveProperty('verifyWithdrawn');
  expect(await isOnRecord()).toBe(true);
});

testProxied('an apply that fails after it has withdrawn the verify says so', async () => {
  await verifyNow();
  let isWithdrawn = false;
  proxied = await startProxied(tool, async () => {
    isWithdrawn ||= !(await isOnRecord());
    return isWithdrawn ? 'kill' : 'forward';
  });
  const older = writeSource({ ...legacy, profiles: [user('ada', 'Older')] });
  const { exitCode, err } = await proxied.tool.text('apply', '--source', older, '--run', 'older');
  expect(exitCode).toBe(1);
  expect(err).toMatch(/^The clean verify on record is withdrawn, .*: verify again\.\nerror: .*\n$/);
});

/** Follows an undated source in this process; what it prints until it is stopped, which `onRound` does. */
async function follow(
  folder: string,
  options: readonly string[],
  onRound: (round: number, stop: () => void) => Promise<void>,
): Promise<string> {
  const interrupt = new AbortController();
  let printed = '';
  let round = 0;
  const print = (text: string): void => {
    printed += text;
    if (/round"?:? ?\d/.test(text)) void onRound((round += 1), () => interrupt.abort());
  };
  await runMigrate(
    [
      'apply',
      '--source',
      folder,
      '--run',
      'older',
      '--follow',
      '--lag',
      '1s',
      '--full-every',
      '1s',
      ...options,
    ],
    { env: tool.env, out: print, err: { write: print }, signal: interrupt.signal },
  );
  return printed;
}

test.each([
  [
    'for people',
    [],
    /round 1: .*\n[^]*Z round (?!1:)\d+: .* 1 updated.*\n.*Z round \d+: The clean verify on record is withdrawn, .*: verify again\.\n/,
  ],
  ['for machines', ['--json'], /"round":(?!1,)\d+.*"updated":1.*"verifyWithdrawn":true/],
])('a later round of --follow that withdraws the verify says so, %s', async (_, options, expected) => {
  const folder = writeSource(legacy);
  let isVerified = false;
  const printed = await follow(folder, options, async (round, stop) => {
    if (round === 1) {
      await verifyNow();
      isVerified = true;
      writeSource({ profiles: [user('ada', 'Older'), ...legacy.profiles.slice(1)] }, folder);
    } else if (isVerified && !(await isOnRecord())) stop();
  });
  expect(printed).toMatch(expected);
});
