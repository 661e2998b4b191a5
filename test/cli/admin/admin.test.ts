import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { banUsernames } from '../../../src/redis/denylist.ts';
import { cutoverKey, hashApiKey, organizationBase } from '../../../src/redis/keys.ts';
import { authenticate, readWriteSnapshot } from '../../../src/redis/changes.ts';
import { openEmbedded } from '../../../src/redis/connection/embedded.ts';
import { putProfile } from '../../../src/redis/profiles.ts';
import { runTool, type Ran } from '../../support/tools/admin.ts';
import { programOf } from '../../support/run/program.ts';
import { environmentFor, freshPrefix, startRedis, unusedPort } from '../../support/redis.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();
let env: NodeJS.ProcessEnv;
let base: string;
beforeEach(() => {
  const prefix = freshPrefix();
  env = environmentFor(prefix);
  base = organizationBase(prefix, 'acme');
});

const admin = (command: string | string[], signal?: AbortSignal): Promise<Ran> =>
  runTool(env, command, signal);

/** The tool's JSON; the command must succeed. */
async function adminJson(command: string): Promise<unknown> {
  const { code, out, err } = await admin(`${command} --json`);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return JSON.parse(out) as unknown;
}

const put = async (user: string, username: string) =>
  (await putProfile(store, base, user, { username }, await readWriteSnapshot(store, base, user))).kind;

/** An error is one line, which says what to do; and nothing was printed as if it had been done. */
function expectOneLine({ err }: Ran): void {
  expect(err).toMatch(/^error: [^\n]+\n$/);
  expect(err).not.toMatch(/\bat .*:\d+:\d+/);
}

describe('org', () => {
  test('set compares names as it is told, also if another command creates the organization meanwhile', async () => {
    for (let n = 0; n < 20; n++) {
      const [, ran] = await Promise.all([
        admin(`org set both-${n} --username-min 2`),
        admin(`org set both-${n} --username-comparison case-insensitive --json`),
      ]);
      expect(ran.code).toBe(0);
      expect(JSON.parse(ran.out)).toMatchObject({ usernameComparison: 'case-insensitive' });
    }
  });

  test('set creates an organization, and later changes only the given settings', async () => {
    const made = await admin(['org', 'set', 'acme', '--username-min', '2', '--username-pattern', '[a-z]+']);
    expect(made).toMatchObject({ code: 0, err: '' });
    expect(made.out).toContain('acme created');
    await adminJson('org set acme --username-max 9 --require-ownership true');
    expect(await adminJson('org show acme')).toEqual({
      organizationId: 'acme',
      usernameMinLength: 2,
      usernameMaxLength: 9,
      usernamePattern: '[a-z]+',
      usernameComparison: 'exact',
      requireOwnership: true,
      deniedUsernames: 0,
      objects: 0,
      apiKeys: 0,
    });
    await admin(['org', 'set', 'acme', '--username-pattern', '', '--object-url-template', 'https://c.example/{objectDefinitionId}']); // prettier-ignore
    const shown = await adminJson('org show acme');
    expect(shown).not.toHaveProperty('usernamePattern');
    expect(shown).toHaveProperty('objectImageUrlTemplate', 'https://c.example/{objectDefinitionId}');
  });

  test('set without a setting changes nothing of an organization that exists', async () => {
    const settings = { comparison: 'exact', min: '2', max: '9' };
    await store.hset(`${base}settings`, settings);
    const { code, out } = await admin('org set acme');
    expect({ code, out }).toEqual({
      code: 0,
      out: expect.stringMatching(/^Organization acme exists.*: nothing was changed/),
    });
    // Settings made here, even to what they were, are no longer changed by a migration.
    expect(await store.hgetall(`${base}settings`)).toEqual(settings);
  });

  test('list shows every organization', async () => {
    expect((await admin('org list')).out).toContain('org set');
    await admin('org set zeta');
    await admin('org set acme --username-comparison case-insensitive');
    expect(await adminJson('org list')).toMatchObject([
      { organizationId: 'acme', usernameComparison: 'case-insensitive' },
      { organizationId: 'zeta', usernameComparison: 'exact' },
    ]);
    expect((await admin('org list')).out).toMatch(/^organization .*\nacme +1-64 +case-insensitive/);
  });

  test('list shows no organization whose creation was interrupted', async () => {
    await admin('org set acme');
    await store.sadd(`${env['KEY_PREFIX']}orgs`, 'half');
    expect(await adminJson('org list')).toMatchObject([{ organizationId: 'acme' }]);
  });

  test.each([
    ['--username-min', '0'],
    ['--username-min', 'x'],
    ['--username-max', '257'],
    ['--username-pattern', '('],
    ['--username-comparison', 'fuzzy'],
    ['--object-url-template', 'ftp://x'],
    ['--object-url-template', 'https://c.example/{datasourceID}/{objectDefinitionId}'],
    ['--require-ownership', 'perhaps'],
    ['--no-such', 'flag'],
  ])('set refuses %s %s and changes nothing', async (flag, value) => {
    const ran = await admin(['org', 'set', 'acme', '--username-max', '20', flag, value]);
    expect(ran.code).toBe(2);
    expectOneLine(ran);
    expect(await adminJson('org list')).toEqual([]);
  });

  test.each([
    ['nothing', ''],
    ['a line feed', 'a\nb'],
    ['257 characters', 'x'.repeat(257)],
    ['half a character', '\uD800'],
    ['a space at its begin', ' acme'],
    ['a space at its end', 'acme '],
  ])('set refuses %s as an id', async (_, id) => {
    const ran = await admin(['org', 'set', id]);
    expect(ran.code).toBe(2);
    expectOneLine(ran);
    expect(await adminJson('org list')).toEqual([]);
  });

  test('set changes the comparison of usernames, or lists the collisions and changes nothing', async () => {
    await admin('org set acme');
    await put('ada', 'Ada');
    await put('eve', 'ADA');
    const refused = await admin('org set acme --username-max 9 --username-comparison case-insensitive');
    expect(refused.code).toBe(1);
    expectOneLine(refused);
    expect(refused.out).toMatch(/Ada +ada\n/);
    expect(refused.out).toMatch(/ADA +eve\n/);
    expect(await adminJson('org show acme')).toMatchObject({
      usernameMaxLength: 64,
      usernameComparison: 'exact',
    });
    const machine = await admin('org set acme --username-comparison case-insensitive --json');
    expect(JSON.parse(machine.out)).toMatchObject({ changed: false, collisions: [{ length: 2 }] });

    await put('eve', 'Eve');
    const changed = await admin('org set acme --username-max 9 --username-comparison case-insensitive');
    expect(changed).toMatchObject({ code: 0, err: '' });
    expect(await put('bob', 'ADA')).toBe('taken');
    expect(await adminJson('org set acme --username-comparison exact')).toMatchObject({
      usernameMaxLength: 9,
      usernameComparison: 'exact',
    });
    expect(await put('bob', 'ADA')).toBe('put');
  });

  test('set restores the comparison of usernames where the settings have none', async () => {
    await admin('org set acme');
    await put('ada', 'Ada');
    await store.hdel(`${base}settings`, 'comparison');
    const faulty = await admin('fsck');
    expect(faulty.out).toContain('settings-invalid');
    expect(await adminJson('org set acme --username-comparison case-insensitive')).toMatchObject({
      usernameComparison: 'case-insensitive',
    });
    expect((await admin('fsck')).code).toBe(0);
  });

  test('set does not make an organization anew whose settings are lost, as long as it has names', async () => {
    await admin('org set acme');
    await admin('key create --org acme --role player --user ada');
    await put('ada', 'Ada');
    await store.del(`${base}settings`);
    const refused = await admin('org set acme');
    expect(refused.code).toBe(1);
    expectOneLine(refused);
    expect(refused.err).toContain('fsck --org acme says what to restore first');
    expect(await store.exists(`${base}settings`)).toBe(0);
    await store.del(`${base}n0:0`);
    expect((await admin('org set acme')).code).toBe(0);
  });

  test('an interrupted set changes nothing', async () => {
    await admin('org set acme');
    await put('ada', 'Ada');
    const ran = await admin('org set acme --username-comparison case-insensitive', AbortSignal.abort());
    expect(ran.code).toBe(130);
    expectOneLine(ran);
    expect(await adminJson('org show acme')).toMatchObject({ usernameComparison: 'exact' });
  });
});

describe('key', () => {
  test('create prints a key once, which works until it is revoked', async () => {
    await admin('org set acme');
    const expires = new Date(Date.now() + 3_600_000).toISOString();
    const made = await adminJson(
      `key create --org acme --role player --user u-1 --client ios-4.2 --expires ${expires}`,
    );
    const { apiKey, keyId } = made as Record<'apiKey' | 'keyId', string>;
    expect(Object.keys(made as object)).toEqual(['apiKey', 'keyId']);
    expect(await authenticate(store, base, hashApiKey(apiKey))).toMatchObject({
      caller: { keyId, role: 'player', userId: 'u-1', client: 'ios-4.2' },
    });
    const listed = await admin('key list --org acme');
    expect(listed.out).toContain(keyId);
    expect(listed.out).not.toContain(apiKey);
    expect(await adminJson('key list --org acme')).toMatchObject([
      { keyId, role: 'player', userId: 'u-1', client: 'ios-4.2', expiresAt: expires, state: 'active' },
    ]);
    expect(await adminJson(`key revoke --org acme ${keyId}`)).toEqual({ keyId, revoked: true });
    expect(await authenticate(store, base, hashApiKey(apiKey))).toEqual({ kind: 'unknown' });
    expect(await adminJson('key list --org acme')).toMatchObject([{ keyId, state: 'revoked' }]);
    expect((await admin(`key revoke --org acme ${keyId}`)).code).toBe(0);
  });

  test.each([
    ['acme', 'acme'],
    ["my org's", String.raw`'my org'\''s'`],
  ])('a key of %s that could not be shown is named, with the remedy', async (organization, word) => {
    await admin(['org', 'set', organization]);
    const args = ['key', 'create', '--org', organization, '--role', 'admin'];
    const command = [process.execPath, ...programOf('scripts/admin'), ...args];
    const { status, stderr } = spawnSync('sh', ['-c', '"$@" >/dev/full', 'sh', ...command], {
      env: { ...process.env, NODE_OPTIONS: '', ...env },
      encoding: 'utf8',
    });
    const [, keyId = ''] = /^error: key (k_\w+) was created, /.exec(stderr) ?? [];
    expect(status).toBe(1);
    expect(stderr).toContain(
      `: revoke it with profile-bridge admin key revoke --org ${word} ${keyId}, then create`,
    );
    expect(keyId).not.toBe('');
  });

  test('create prints a key for people, and warns about a player key without a user', async () => {
    await admin('org set acme');
    expect((await admin('key create --org acme --role admin')).out).toMatch(/^pb_[\w-]{43}\n\nKey k_/);
    expect((await admin('key create --org acme --role player')).out).toContain('--user');
  });

  test('create refuses an invalid or past expiry, and an unknown role', async () => {
    await admin('org set acme');
    for (const flags of [
      '--role admin --expires 2020-01-01T00:00:00Z',
      '--role admin --expires 2099-01-01T00:00:00',
      '--role admin --expires soon',
      '--role king',
      '--user u-1',
    ]) {
      const ran = await admin(`key create --org acme ${flags}`);
      expect(ran.code).toBe(2);
      expectOneLine(ran);
    }
    expect(await adminJson('key list --org acme')).toEqual([]);
  });

  test('list shows the keys where a time of one of them is not a time', async () => {
    await admin('org set acme');
    const made = (await adminJson('key create --org acme --role admin')) as { apiKey: string };
    await store.hset(`${base}key:${hashApiKey(made.apiKey)}`, 't', 'x', 'e', 'soon');
    await admin('key create --org acme --role player');
    expect(await adminJson('key list --org acme')).toMatchObject([
      { role: 'admin', createdAt: '1970-01-01T00:00:00Z', state: 'expired' },
      { role: 'player', state: 'active' },
    ]);
  });

  test('revoke reports an unknown key', async () => {
    await admin('org set acme');
    const ran = await admin('key revoke --org acme k_0000000000000000');
    expect(ran.code).toBe(1);
    expectOneLine(ran);
    expect(ran.err).toContain('key list');
  });
});

test('objects, collections and wallets take effect on profiles', async () => {
  await admin('org set acme --require-ownership true');
  const hat = { datasourceId: 'hats', objectDefinitionId: 'top' };
  const wallet = `0x${'aB'.repeat(20)}`;
  const url = 'https://cdn.example/top.png';
  expect(await adminJson(`object set --org acme --datasource hats --object top --url ${url}`)).toMatchObject({
    ...hat,
    url,
  });
  expect(
    await adminJson('collection add --org acme --user ada --datasource hats --object top'),
  ).toMatchObject({ userId: 'ada', ...hat });
  expect(await adminJson(`wallet set --org acme --user ada --address ${wallet}`)).toMatchObject({
    verified: true,
  });
  const snapshot = await readWriteSnapshot(store, base, 'ada');
  const worn = await putProfile(store, base, 'ada', { avatar: hat }, snapshot);
  expect(worn).toMatchObject({ profile: { wallet, avatarUrl: url } });
  await adminJson(`wallet set --org acme --user ada --address ${wallet} --unverified`);
  expect(await store.hgetall(`${base}p:ada`)).toMatchObject({ wu: wallet });
  expect(await store.hexists(`${base}p:ada`, 'w')).toBe(0);
});

describe('what the legacy service does not learn of is warned of while it is not retired:', () => {
  const address = `0x${'aB'.repeat(20)}`;
  test.each([
    ['key create --org acme --role admin', /: it refuses the key.* until it has the key as well\n$/],
    ['key revoke --org acme k_1', /: it accepts the key until it is revoked there as well\n$/],
    [`wallet set --org acme --user ada --address ${address}`, /: set the wallet there as well/],
    [
      'object set --org acme --datasource d --object o --url https://x.example/1.png',
      /: set the URL there as well/,
    ],
  ])('%s', async (command, remedy) => {
    await admin('org set acme');
    const key = cutoverKey(env['KEY_PREFIX'] ?? '');
    await store.hset(`${base}keys`, 'k_1', hashApiKey('secret'));
    await store.hset(`${base}key:${hashApiKey('secret')}`, { i: 'k_1', r: 'admin', t: '1' });
    for (const [mode, when] of [
      ['shadow', 'which answers in shadow,'],
      ['mirror', 'which answers in mirror,'],
      ['reverse', 'which answers again if the mode goes back to mirror,'],
    ] as const) {
      await store.hset(key, { mode });
      const { code, err } = await admin(`${command} --json`);
      expect({ code, err }).toEqual({ code: 0, err: expect.stringMatching(remedy) as unknown });
      expect(err).toContain(`warning: the legacy service, ${when} does not learn of this`);
    }
    await store.hset(key, { mode: 'native' });
    await adminJson(command);
  });
});

test.each([
  'object set --org acme --datasource d --object o --url javascript:alert(1)',
  'object set --org acme --datasource d --url https://x.example/',
  'collection add --org acme --user u --datasource d',
  'wallet set --org acme --user u --address 0x12',
  'wallet set --org acme --user u',
  'key list',
  'fsck extra',
  'frobnicate',
])('wrong usage is exit code 2 and one line: %s', async (command) => {
  await admin('org set acme');
  const ran = await admin(command);
  expect(ran.code).toBe(2);
  expectOneLine(ran);
  expect(ran.err).toContain('--help');
});

test.each([
  'org show nope',
  'key create --org nope --role admin',
  'key list --org nope',
  'key revoke --org nope k_1',
  'object set --org nope --datasource d --object o --url https://x.example/',
  'collection add --org nope --user u --datasource d --object o',
  'wallet set --org nope --user u --address 0x0000000000000000000000000000000000000000',
  'audit --org nope',
  'fsck --org nope',
  'usage --org nope',
  'usage retire-check --org nope',
])('an unknown organization is exit code 1 and one line with the remedy: %s', async (command) => {
  const ran = await admin(command);
  expect(ran).toMatchObject({ code: 1, out: '' });
  expectOneLine(ran);
  expect(ran.err).toContain('there is no organization "nope": create it with profile-bridge admin org set');
  const nope = organizationBase(String(env['KEY_PREFIX']), 'nope');
  const keys = ['keys', 'objects', 'c:u', 'p:u', 'local-writes'].map((key) => nope + key);
  expect(await store.exists(...keys)).toBe(0);
});

test('audit shows the changes and their authors', async () => {
  await admin('org set acme');
  expect((await admin('audit --org acme')).out).toBe('acme has no changes in its audit trail.\n');
  expect(await adminJson('audit --org acme')).toEqual([]);
  const snapshot = await readWriteSnapshot(store, base);
  await banUsernames({ store, base, keyId: 'k_1', snapshot }, new Map([['root', 'x']]));
  expect((await admin('audit --org acme')).out).toMatch(/^\S+Z +k_1 +ban .*username="root"/);
  expect(await adminJson('audit --org acme')).toMatchObject([
    { operation: 'ban', by: 'k_1', details: { username: 'root' } },
  ]);
});

test('fsck exits 1 while faults remain, and 0 once they are repaired', async () => {
  await admin('org set acme');
  expect(await adminJson('fsck')).toMatchObject({ faults: [], found: 0, remaining: 0 });
  await put('ada', 'Ada');
  await store.hset(`${base}p:eve`, 'u', 'Ada', 't', '1');
  const found = await admin('fsck --org acme');
  expect(found.code).toBe(1);
  expect(found.out).toMatch(/^acme +username-shared .*\n/);
  expectOneLine(found);
  const machine = await admin('fsck --json');
  expect(machine.code).toBe(1);
  expect(JSON.parse(machine.out)).toMatchObject({
    faults: [{ organizationId: 'acme', kind: 'username-shared', repaired: false }],
    remaining: 1,
  });
  const repaired = await admin('fsck --repair');
  expect(repaired).toMatchObject({ code: 0, err: '' });
  expect(repaired.out).toContain('[repaired]');
  expect((await admin('fsck')).code).toBe(0);
});

describe('what has been printed with --json is JSON', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** Does something else in place of a call of the tool, after so many that are made. */
  const insteadOf = (command: 'scan' | 'xrange', made: number, act: () => void): void => {
    const original = Redis.prototype[command] as (...args: unknown[]) => Promise<never>;
    let calls = 0;
    jest.spyOn(Redis.prototype, command).mockImplementation(async function (
      this: unknown,
      ...args: unknown[]
    ) {
      if (calls++ >= made) act();
      return await Reflect.apply(original, this, args);
    });
  };
  const loseConnection = (): void => {
    throw new Error('Connection is closed.');
  };

  test('where fsck ends with an error, or is interrupted', async () => {
    await admin('org set acme');
    await store.hset(`${base}settings`, 'min', 'x');
    const faults = [{ kind: 'settings-invalid' }];
    insteadOf('scan', 0, loseConnection);
    const failed = await admin('fsck --json');
    expect([failed.code, JSON.parse(failed.out)]).toMatchObject([1, { faults, complete: false }]);
    expectOneLine(failed);
    jest.restoreAllMocks();
    const interrupt = new AbortController();
    insteadOf('scan', 0, () => interrupt.abort());
    const ended = await admin('fsck --json', interrupt.signal);
    expect([ended.code, JSON.parse(ended.out)]).toMatchObject([130, { faults, complete: false }]);
    jest.restoreAllMocks();
    expect(JSON.parse((await admin('fsck --json')).out)).toMatchObject({ faults, complete: true });
  });

  test('where audit ends with an error, or is interrupted', async () => {
    await admin('org set acme');
    await Promise.all(
      Array.from({ length: 600 }, () => store.xadd(`${base}audit`, '*', 'op', 'ban', 'key', 'k_1')),
    );
    insteadOf('xrange', 1, loseConnection);
    const failed = await admin('audit --org acme --json');
    expect([failed.code, JSON.parse(failed.out)]).toMatchObject([1, { length: 500 }]);
    expectOneLine(failed);
    jest.restoreAllMocks();
    const interrupt = new AbortController();
    insteadOf('xrange', 1, () => interrupt.abort());
    const ended = await admin('audit --org acme --json', interrupt.signal);
    expect([ended.code, JSON.parse(ended.out)]).toMatchObject([130, { length: 500 }]);
  });

  test('and nothing has been where fsck ends with an error before it finds a fault', async () => {
    await admin('org set acme');
    insteadOf('scan', 0, loseConnection);
    expect(await admin('fsck --json')).toMatchObject({ code: 1, out: '' });
  });
});

test('fsck shows a value of any length in a short line, and whole with --json', async () => {
  await admin('org set acme');
  const username = `x"${'y'.repeat(100_000)}`;
  await store.hset(`${base}p:eve`, 'u', username, 't', '1');
  const found = await admin('fsck');
  expect(found.out).toMatch(/acme +username-not-indexed  username "x.*y…" of user "eve"/);
  expect(found.out.length).toBeLessThan(2000);
  expect((await admin('fsck --json')).out).toContain(JSON.stringify(JSON.stringify(username)).slice(1, -1));
});

test('every --help has examples', async () => {
  for (const group of [
    '',
    'org',
    'org set',
    'org show',
    'org list',
    'key create',
    'key list',
    'key revoke',
  ]) {
    const { code, out } = await admin([...group.split(' ').filter(Boolean), '--help']);
    expect(code).toBe(0);
    expect(out).toMatch(/Examples:\n {2}\$ profile-bridge admin /);
  }
  for (const group of ['object set', 'collection add', 'wallet set', 'audit', 'fsck']) {
    const { out } = await admin([...group.split(' '), '--help']);
    expect(out).toMatch(/Examples:\n/);
    expect(out).toContain('--json');
  }
});

test.each(['help bogus', 'help org bogus', 'org help bogus', 'help --json'])(
  '%s is refused in one line',
  async (command) => {
    const ran = await admin(command);
    expect(ran.code).toBe(2);
    expectOneLine(ran);
    expect(ran.out).toBe('');
    expect(ran.err).toContain('--help');
  },
);

test.each(['help', 'help org', 'org help', 'help org set'])('%s prints help', async (command) => {
  const { code, out, err } = await admin(command);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toMatch(/^Usage: profile-bridge admin/);
});

test('stored text is printed without control characters', async () => {
  await admin('org set acme');
  await store.hset(`${base}p:eve`, 'u', '\u001B[2J\u202E', 't', '1');
  const { out } = await admin('fsck');
  expect(out).toContain('username-malformed');
  // eslint-disable-next-line no-control-regex
  expect(out).not.toMatch(/[\u001B\u202E]/);
});

test('an invalid configuration is exit code 2, an unavailable Redis is exit code 1', async () => {
  env['KEY_PREFIX'] = '{';
  const wrong = await admin('org list');
  expect(wrong.code).toBe(2);
  expectOneLine(wrong);
  expect(wrong.err).toContain('KEY_PREFIX');
  env = { REDIS_URL: `redis://127.0.0.1:${await unusedPort()}` };
  const away = await admin('org list');
  expect(away.code).toBe(1);
  expectOneLine(away);
  expect(away.err).toContain('REDIS_URL');
});

test.each([
  ['--maxmemory', '1mb', /^error: Redis is full \(OOM .*\): raise its maxmemory, then run this again\n$/],
  ['--min-replicas-to-write', '1', /^error: Redis has too few replicas \(NOREPLICAS .*\): start /],
] as const)('the remedy fits a Redis with %s %s', async (option, value, message) => {
  const redis = await startRedis([option, value]);
  try {
    env['REDIS_URL'] = redis.url;
    const ran = await admin('org set acme');
    expect(ran).toMatchObject({ code: 1, out: '' });
    expectOneLine(ran);
    expect(ran.err).toMatch(message);
  } finally {
    await redis.stop();
  }
});

describe('without REDIS_URL', () => {
  let dataDir: string;
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'pbtest-admin-'));
    env = { DATA_DIR: dataDir };
  });

  test('admin starts the embedded Redis, or uses that of a running service', async () => {
    expect((await admin('org set acme')).code).toBe(0);
    const service = await openEmbedded({ dataDir });
    try {
      expect(await adminJson('org list')).toMatchObject([{ organizationId: 'acme' }]);
      expect((await admin('org set zeta')).code).toBe(0);
    } finally {
      await service.close();
    }
    expect(await adminJson('org list')).toHaveLength(2);
    rmSync(dataDir, { recursive: true, force: true });
  });
});

describe('admin as a process', () => {
  const root = join(import.meta.dirname, '../../..');

  test('passes its exit code through npm', () => {
    const call = (...args: string[]) =>
      spawnSync('npm', ['run', '-s', 'admin', '--', ...args], {
        cwd: root,
        env: { ...process.env, ...env, NODE_OPTIONS: '' },
        encoding: 'utf8',
      });
    const made = call('org', 'set', 'acme', '--json');
    expect(made.status).toBe(0);
    expect(JSON.parse(made.stdout)).toMatchObject({ organizationId: 'acme' });
    expect(call('org', 'show', 'nope').status).toBe(1);
    expect(call('org', 'frobnicate').status).toBe(2);
  });

  const start = (...args: string[]) =>
    spawn(process.execPath, [...programOf('scripts/admin'), ...args], {
      cwd: root,
      env: { ...process.env, ...env, NODE_OPTIONS: '' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const createFaults = async () => {
    await admin('org set acme');
    const pipeline = store.pipeline();
    for (let i = 0; i < 20_000; i++) pipeline.hset(`${base}p:u${i}`, 'u', `name ${i}`, 't', '1');
    await pipeline.exec();
  };

  test('prints one line, and none of the client of Redis, if Redis refuses its user', async () => {
    const redis = await startRedis();
    try {
      const operator = new Redis(redis.url);
      await operator.call('ACL', 'SETUSER', 'limited', 'on', '>secret', '~*', '+@all', '-info');
      operator.disconnect();
      env['REDIS_URL'] = redis.url.replace('//', '//limited:secret@');
      const tool = start('org', 'list');
      let err = '';
      tool.stderr.on('data', (chunk) => (err += String(chunk)));
      const [code] = (await once(tool, 'close')) as [number];
      expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/^error: .*NOPERM.*\n$/) });
    } finally {
      await redis.stop();
    }
  });

  test('keeps its exit code if nobody reads what it prints', async () => {
    await admin('org set acme');
    const endOf = async (...args: string[]) => {
      const tool = start(...args);
      tool.stdout.destroy();
      tool.stderr.destroy();
      const [code] = (await once(tool, 'close')) as [number];
      return code;
    };
    expect(await endOf('usage', 'retire-check', '--json')).toBe(1);
    expect(await endOf('org', 'frobnicate')).toBe(2);
    expect(await endOf('org', 'list')).toBe(0);
  });

  test('stops with 130, without a message, once nobody reads what it prints', async () => {
    await createFaults();
    const tool = start('fsck');
    let err = '';
    tool.stderr.on('data', (chunk: Buffer) => {
      err += chunk.toString();
    });
    await once(tool.stdout, 'data');
    tool.stdout.destroy();
    const [code] = (await once(tool, 'close')) as [number];
    expect({ code, err }).toEqual({ code: 130, err: '' });
  });

  test('exits with 130 on SIGINT', async () => {
    await createFaults();
    const tool = start('fsck');
    await once(tool.stdout, 'data');
    tool.kill('SIGINT');
    tool.stdout.resume();
    let err = '';
    tool.stderr.on('data', (chunk: Buffer) => {
      err += chunk.toString();
    });
    const [code] = (await once(tool, 'close')) as [number];
    expect(code).toBe(130);
    expect(err).toMatch(/interrupted/);
  });
});
