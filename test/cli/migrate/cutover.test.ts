import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { ReverseModeError, whileRegistered } from '../../../src/cli/migrate/cutover.ts';
import type { Mode } from '../../../src/cutover/modes.ts';
import { readCutover, cutoverBegin } from '../../../src/cutover/switch/registry.ts';
import { gatherEvidence } from '../../../src/cutover/verdict/evidence.ts';
import { judge } from '../../../src/cutover/verdict/readiness.ts';
import {
  cutoverKey,
  denylistKey,
  forwardedOrganizationsKey,
  gapsKey,
  hashApiKey,
  organizationBase,
  profileKey,
  refusedKeysKey,
} from '../../../src/redis/keys.ts';
import { until } from '../../support/until.ts';
import { describeWithPostgres } from '../../support/servers/describe-with.ts';
import { runPostgres, startPostgres } from '../../support/servers/postgres.ts';
import type { PrivateServer } from '../../support/servers/private-server.ts';
import { createTool, newFolder, writeSource } from '../../support/tools/migrate.ts';
import { runTool } from '../../support/tools/admin.ts';
import { environmentFor, freshPrefix } from '../../support/redis.ts';
import { keysOf } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();
let prefix: string;
beforeEach(() => {
  prefix = freshPrefix();
});

const setMode = (mode: Mode) =>
  store.hset(cutoverKey(prefix), { mode, epoch: 1, since: Date.now(), by: 'test' });

/** The tool, in this mode of the cut-over. */
const toolIn = async (mode: Mode) => {
  await setMode(mode);
  return createTool(undefined, prefix);
};

const { signal } = new AbortController();
const source = () => writeSource({ profiles: [{ organizationId: 'acme', userId: 'ada', username: 'Ada' }] });

test('a migration is registered while it writes, and acknowledges no switch before it has ended', async () => {
  await setMode('mirror');
  await whileRegistered({ store, prefix, signal }, async () => {
    expect((await readCutover(store, prefix)).instances).toMatchObject([{ kind: 'migrate' }]);
    await cutoverBegin(store, cutoverKey(prefix), 'token', 'mirror', 'shadow', 60_000);
    await until(async () => ((await readCutover(store, prefix)).instances[0]?.epoch ?? 0) > 1);
    expect((await readCutover(store, prefix)).instances).toMatchObject([{ acknowledged: undefined }]);
  });
  expect((await readCutover(store, prefix)).instances).toEqual([]);
});

test('without a cut-over, a migration registers nothing', async () => {
  await whileRegistered({ store, prefix, signal }, async () => {
    expect(await store.exists(cutoverKey(prefix))).toBe(0);
  });
});

test('a migration stops once the mode was switched to reverse while it ran', async () => {
  await setMode('mirror');
  const stopped = whileRegistered({ store, prefix, signal }, async (_epoch, ending) => {
    await setMode('reverse');
    await until(() => ending.aborted);
  });
  await expect(stopped).rejects.toThrow(ReverseModeError);
});

test.each([['apply'], ['apply', '--follow']])(
  'migrate %s %s writes nothing in reverse',
  async (...command) => {
    const tool = await toolIn('reverse');
    const { exitCode, err } = await tool.text(...command, '--source', source());
    expect(err).toMatch(/^error: the mode of the cut-over is reverse: .* admin cutover set mirror\n$/);
    expect(exitCode).toBe(1);
    expect(await keysOf(store, `${prefix}{`)).toEqual([]);
  },
);

test('migrate apply writes nothing while Redis has lost the last switch', async () => {
  const tool = await toolIn('mirror');
  await store.hset(cutoverKey(prefix), 'lost', 2);
  const { exitCode, err } = await tool.text('apply', '--source', source());
  expect(err).toMatch(
    /^error: Redis has lost the last switch of the mode: .* admin cutover set, then run the/,
  );
  expect(exitCode).toBe(1);
  expect(await keysOf(store, `${prefix}{`)).toEqual([]);
});

test('migrate apply writes in mirror as it does without a cut-over', async () => {
  const tool = await toolIn('mirror');
  const { exitCode, json } = await tool.json('apply', '--source', source());
  expect({ exitCode, created: json['created'] }).toEqual({ exitCode: 0, created: 1 });
});

test('a clean verify of files counts where --as-of says when they were exported', async () => {
  const tool = await toolIn('mirror');
  const files = source();
  const exportedAt = Date.now();
  expect(await tool.text('apply', '--source', files)).toMatchObject({ exitCode: 0 });
  const undated = await tool.text('verify', '--source', files);
  expect(undated.exitCode).toBe(0);
  expect(undated.out).toMatch(
    /\nNo differences\.\n\nThis verify is not recorded for the cut-over, .* --as-of /,
  );
  expect((await readCutover(store, prefix)).verifiedAt).toBeUndefined();

  const asOf = ['--as-of', new Date(exportedAt).toISOString()];
  const begun = performance.now();
  const dated = await tool.text('verify', '--source', files, ...asOf);
  expect(dated.exitCode).toBe(0);
  expect(dated.out).toMatch(/\nNo differences\.\n$/);
  const { verifiedAt = 0 } = await readCutover(store, prefix);
  // Its age is taken a moment before it is subtracted from the store's clock.
  expect(verifiedAt).toBeGreaterThanOrEqual(exportedAt - 5);
  expect(verifiedAt).toBeLessThanOrEqual(exportedAt + performance.now() - begun);
});

test('--as-of is by the clock of Redis, whatever the clock of the machine', async () => {
  const tool = await toolIn('mirror');
  const args = ['--source', source(), '--as-of', new Date(Date.now() - 5000).toISOString()];
  const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() - 3_600_000);
  try {
    expect(await tool.text('apply', ...args)).toMatchObject({ exitCode: 0 });
    expect(await tool.text('verify', ...args)).toMatchObject({ exitCode: 0 });
  } finally {
    clock.mockRestore();
  }
  expect((await readCutover(store, prefix)).verifiedAt).toBe(Date.parse(args[3] ?? ''));
});

test('a verify that finds differences withdraws the clean one before it, unless Redis is the authority', async () => {
  const tool = await toolIn('mirror');
  const files = source();
  const asOf = ['--as-of', new Date().toISOString()];
  await tool.text('apply', '--source', files, ...asOf);
  await tool.text('verify', '--source', files, ...asOf);
  expect((await readCutover(store, prefix)).verifiedAt).toBeDefined();
  const other = writeSource({ profiles: [{ organizationId: 'acme', userId: 'ada', username: 'Bob' }] });
  for (const mode of ['reverse', 'mirror'] as const) {
    await setMode(mode);
    expect(await tool.text('verify', '--source', other)).toMatchObject({ exitCode: 1 });
    expect((await readCutover(store, prefix)).verifiedAt !== undefined).toBe(mode === 'reverse');
  }
});

test('a key that was answered 403 blocks no switch once a clean verify has found it in the source, but is warned of', async () => {
  const tool = await toolIn('mirror');
  const sha256 = hashApiKey('secret');
  const profiles = [{ organizationId: 'acme', userId: 'ada' }];
  const files = {
    profiles,
    'api-keys': [{ organizationId: 'acme', apiKey: 'secret', role: 'player', userId: 'ada' }],
  };
  const args = ['--source', writeSource(files), '--as-of', new Date().toISOString()];
  expect(await tool.text('apply', ...args)).toMatchObject({ exitCode: 0 });
  await store.sadd(forwardedOrganizationsKey(prefix), 'acme');
  const entry = { userAgent: 'game/7', at: 1000, status: 403 };
  await store.hset(refusedKeysKey(organizationBase(prefix, 'acme')), sha256, JSON.stringify(entry));
  const found = async () => {
    const { reasons, warnings } = judge(await gatherEvidence(store, prefix), 'reverse');
    return [reasons, warnings].map((findings) => findings.some(({ code }) => code === 'refused-keys'));
  };
  expect(await found()).toEqual([true, false]);
  expect(await tool.text('verify', ...args, '--entities', 'profiles')).toMatchObject({ exitCode: 0 });
  expect(await found()).toEqual([true, false]);
  expect(await tool.text('verify', ...args)).toMatchObject({ exitCode: 0 });
  expect(await found()).toEqual([false, true]);
  expect((await runTool(environmentFor(prefix), 'cutover status')).out).toMatch(
    /acme, key k_\w+: refused by the legacy service, last seen 1970-01-01T00:00:01Z; the source has it\n/,
  );
});

describe('a clean verify is not recorded', () => {
  const gap = JSON.stringify({ count: 1, first: 1, last: 1 });
  const base = (id: string) => organizationBase(prefix, id);
  const verified = async (files: Record<string, readonly object[]>) => {
    const tool = createTool(undefined, prefix);
    const args = ['--source', writeSource(files), '--as-of', new Date().toISOString()];
    expect(await tool.text('apply', ...args)).toMatchObject({ exitCode: 0 });
    const { exitCode, out } = await tool.text('verify', ...args);
    expect({ exitCode, out }).toMatchObject({ exitCode: 0, out: expect.stringContaining('No differences.') });
    const [, why] = /This verify is not recorded for the cut-over, since (.*)\n/.exec(out) ?? [];
    const { verifiedAt } = await readCutover(store, prefix);
    return { why, isRecorded: verifiedAt !== undefined };
  };
  const of = (...ids: string[]) =>
    ids.map((organizationId) => ({ organizationId, userId: 'ada', username: 'Ada' }));

  test('if the source has no profiles', async () => {
    await setMode('mirror');
    expect(await verified({ denylist: [{ organizationId: 'acme', username: 'root' }] })).toEqual({
      why: expect.stringContaining('the source has no profiles'),
      isRecorded: false,
    });
  });

  test('if an organization that was migrated or used is not in the source: its gaps stay', async () => {
    await setMode('mirror');
    await createTool(undefined, prefix).text('apply', '--source', writeSource({ profiles: of('other') }));
    await store.sadd(forwardedOrganizationsKey(prefix), 'acme', 'unknown here');
    for (const id of ['acme', 'unknown here']) await store.hset(gapsKey(base(id)), 'unknown-key', gap);
    expect(await verified({ profiles: of('acme') })).toEqual({
      why: expect.stringContaining('does not have 2 organizations in use (other, unknown here)'),
      isRecorded: false,
    });
    expect(await store.hkeys(gapsKey(base('acme')))).toEqual(['unknown-key']);

    const described = [{ organizationId: 'unknown here' }];
    expect(await verified({ profiles: of('acme', 'other'), organizations: described })).toEqual({
      why: undefined,
      isRecorded: true,
    });
    for (const id of ['acme', 'unknown here']) expect(await store.exists(gapsKey(base(id)))).toBe(0);
  });

  test('if a user came from it with a name that was banned since', async () => {
    await setMode('mirror');
    const profiles = of('acme');
    await createTool(undefined, prefix).text('apply', '--source', writeSource({ profiles: of('acme') }));
    const later = Date.now() + 60_000;
    await store.hset(`${base('acme')}cutover:adoptions`, 'name:Ada', later);
    expect((await verified({ profiles, denylist: [] })).isRecorded).toBe(true);
    await store.hset(denylistKey(base('acme'), '0'), 'Ada', '');
    expect(await verified({ profiles, denylist: [] })).toMatchObject({
      why: expect.stringContaining('in acme a user has the name "Ada", which was banned after'),
    });
  });

  test('if the source has no denylist where there is one, or a change of it is in doubt', async () => {
    await setMode('mirror');
    const why = expect.stringContaining('the source has no denylist');
    await store.sadd(forwardedOrganizationsKey(prefix), 'acme');
    await store.hset(gapsKey(base('acme')), 'denylist-outcome-unknown', gap);
    expect(await verified({ profiles: of('acme') })).toEqual({ why, isRecorded: false });
    expect(await verified({ profiles: of('acme'), denylist: [] })).toEqual({
      why: undefined,
      isRecorded: true,
    });
  });
});

test('an apply of files overwrites nothing that was adopted from the legacy service after --as-of', async () => {
  const tool = await toolIn('mirror');
  const apply = async (username: string, ...options: string[]) =>
    await tool.text(
      'apply',
      '--source',
      writeSource({ profiles: [{ organizationId: 'acme', userId: 'ada', username }] }),
      ...options,
    );
  await apply('Ada');
  const profile = profileKey(organizationBase(prefix, 'acme'), 'ada');
  await store.hset(profile, 'at', Date.now(), 'as', 1);
  await apply('Older', '--as-of', new Date(Date.now() - 3_600_000).toISOString());
  expect(await store.hget(profile, 'u')).toBe('Ada');
});

test('a user who was adopted and is not in a newer source is a difference, until a prune removes the user', async () => {
  const tool = await toolIn('mirror');
  const of = (...names: string[]) =>
    writeSource({
      profiles: names.map((username) => ({ organizationId: 'acme', userId: username, username })),
    });
  await tool.text('apply', '--source', of('ada', 'bob'));
  const profile = profileKey(organizationBase(prefix, 'acme'), 'bob');
  const adoptedAt = Date.now() - 60_000;
  await store.hset(profile, 'at', adoptedAt, 'as', 1);

  const without = async (command: string, asOf: number, ...options: string[]) => {
    const dated = ['--as-of', new Date(asOf).toISOString()];
    return await tool.json(command, '--source', of('ada'), ...dated, ...options);
  };
  const older = await without('verify', adoptedAt - 1);
  expect(older).toMatchObject({ exitCode: 0, json: { extra: 0, changedHere: 1 } });
  const newer = await without('verify', adoptedAt + 1);
  expect(newer).toMatchObject({ exitCode: 1, json: { extra: 1, changedHere: 0 } });
  expect(newer.err).toContain('apply again with --prune');
  const prune = ['--prune', '--prune-at-most', '1'];
  expect((await without('apply', adoptedAt + 1, ...prune)).json).toMatchObject({ pruned: { profiles: 1 } });
  expect(await store.exists(profile)).toBe(0);
  expect(await without('verify', adoptedAt + 1)).toMatchObject({ exitCode: 0, json: { changedHere: 0 } });
});

describe('an apply of a source that is older than the clean verify on record', () => {
  const profiles = (username: string) => [{ organizationId: 'acme', userId: 'ada', username }];
  const denied = (username: string) => [{ organizationId: 'acme', username }];
  const denylist = () => denylistKey(organizationBase(prefix, 'acme'), '0');
  const [monday, tuesday] = [3_600_000, 60_000].map((ago) => new Date(Date.now() - ago).toISOString());

  /** A name was banned and another one allowed through the bridge since Monday; all of Tuesday's was verified. */
  const verifiedTool = async () => {
    const tool = await toolIn('mirror');
    await store.sadd(forwardedOrganizationsKey(prefix), 'acme');
    const files = writeSource({ profiles: profiles('Ada'), denylist: denied('Evil') });
    await tool.text('apply', '--source', files);
    const bannedAt = Date.now() - 120_000;
    await store.hset(`${organizationBase(prefix, 'acme')}cutover:adoptions`, {
      'name:Evil': bannedAt,
      'name:Free': bannedAt,
    });
    await tool.text('verify', '--source', files, '--as-of', String(tuesday));
    expect((await readCutover(store, prefix)).verifiedAt).toBeDefined();
    return tool;
  };
  const prune = ['--prune', '--prune-at-most', '1'];

  test('undoes no ban and no removal that was adopted before the verify', async () => {
    const tool = await verifiedTool();
    const older = writeSource({ profiles: profiles('Ada'), denylist: denied('Free') });
    const { exitCode, json } = await tool.json(
      'apply',
      '--source',
      older,
      ...prune,
      '--as-of',
      String(monday),
    );
    expect({ exitCode, json }).toMatchObject({ exitCode: 0, json: { created: 0, kept: 1 } });
    expect(json).not.toHaveProperty('verifyWithdrawn');
    expect(await store.hkeys(denylist())).toEqual(['Evil']);
    expect((await readCutover(store, prefix)).verifiedAt).toBeDefined();
  });

  test('adds a name that no adopted change has removed, also from files of unknown age; a verify misses it', async () => {
    const tool = await verifiedTool();
    const names = ['Evil', 'New', 'Free'].flatMap(denied);
    const files = writeSource({ profiles: profiles('Ada'), denylist: names });
    const missing = await tool.json('verify', '--source', files);
    expect(missing).toMatchObject({ exitCode: 1, json: { missing: 1, changedHere: 1 } });
    const { exitCode, json } = await tool.json('apply', '--source', files);
    expect({ exitCode, json }).toMatchObject({ exitCode: 0, json: { created: 1, kept: 1 } });
    expect((await store.hkeys(denylist())).sort()).toEqual(['Evil', 'New']);
    expect(await tool.json('verify', '--source', files)).toMatchObject({ exitCode: 0 });
    // Nor does a source of unknown age remove the ban.
    const without = writeSource({ profiles: profiles('Ada'), denylist: denied('New') });
    await tool.json('apply', '--source', without, ...prune);
    expect((await store.hkeys(denylist())).sort()).toEqual(['Evil', 'New']);
  });

  test.each([
    ['as of a time before it', ['--as-of', String(monday)], true],
    ['of unknown age', [], true],
    ['as of its own time', ['--as-of', String(tuesday)], false],
  ])('withdraws it if anything was changed (%s)', async (_what, asOf, isWithdrawn) => {
    const tool = await verifiedTool();
    const other = writeSource({ profiles: profiles('Older'), denylist: denied('Evil') });
    const { exitCode, out } = await tool.text('apply', '--source', other, ...asOf);
    expect(exitCode).toBe(0);
    expect(/\nThe clean verify on record is withdrawn, .*: verify again\.\n/.test(out)).toBe(isWithdrawn);
    expect((await readCutover(store, prefix)).verifiedAt === undefined).toBe(isWithdrawn);
  });

  test('withdraws it if records were removed', async () => {
    const tool = await verifiedTool();
    const added = profileKey(organizationBase(prefix, 'acme'), 'bob');
    await store.hset(added, 't', 1);
    const other = writeSource({ profiles: profiles('Ada'), denylist: denied('Evil') });
    const { json } = await tool.json('apply', '--source', other, '--as-of', String(monday), ...prune);
    expect(json).toMatchObject({ updated: 0, pruned: { profiles: 1 }, verifyWithdrawn: true });
    expect((await readCutover(store, prefix)).verifiedAt).toBeUndefined();
  });

  test('withdraws nothing while Redis is the authority', async () => {
    const tool = await verifiedTool();
    await setMode('native');
    const other = writeSource({ profiles: profiles('Older') });
    const { json } = await tool.json('apply', '--source', other, '--as-of', String(monday));
    expect(json).toMatchObject({ updated: 1 });
    expect((await readCutover(store, prefix)).verifiedAt).toBeDefined();
  });
});

describeWithPostgres('a materialized view, which may lag,', () => {
  let server: PrivateServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.stop();
  });

  test('overwrites nothing that was adopted from the legacy service, and a clean verify of it is not recorded', async () => {
    const tool = await toolIn('mirror');
    const url = server.url('postgres');
    await runPostgres(
      url,
      `CREATE MATERIALIZED VIEW exported AS SELECT 'acme' AS "organizationId", 'ada' AS "userId", 'Ada' AS username`,
    );
    const mapping = join(newFolder(), 'map.yaml');
    writeFileSync(mapping, 'entities: {profiles: {query: SELECT * FROM exported, key: [userId]}}');
    const args = ['--source', url, '--mapping', mapping];
    expect(await tool.text('apply', ...args)).toMatchObject({ exitCode: 0 });
    const verified = await tool.text('verify', ...args);
    expect(verified).toMatchObject({ exitCode: 0, out: expect.stringContaining('may lag behind') });
    expect((await readCutover(store, prefix)).verifiedAt).toBeUndefined();

    const profile = profileKey(organizationBase(prefix, 'acme'), 'ada');
    await store.hset(profile, 'w', 'https://adopted.example', 'at', Date.now(), 'as', 1);
    expect(await tool.text('apply', ...args)).toMatchObject({ exitCode: 0 });
    expect(await store.hget(profile, 'w')).toBe('https://adopted.example');
  });
});

test.each([
  ['postgres://reader@127.0.0.1/game', '2026-01-31T18:00:00Z', 'a database is read as it is now'],
  ['.', 'yesterday', 'a date and a time with a zone'],
  [source(), '2999-01-01T00:00:00Z', '--as-of must not be in the future: by the clock of Redis it is 20'],
])('--as-of with %s as of %s is wrong usage', async (from, asOf, reason) => {
  const { exitCode, err } = await createTool(undefined, prefix).text(
    'verify',
    '--source',
    from,
    '--as-of',
    asOf,
  );
  expect({ exitCode, err }).toEqual({ exitCode: 2, err: expect.stringContaining(reason) });
});
