import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PassThrough, type Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { Client } from 'pg';
import { runMigrate } from '../../src/cli/migrate/run.ts';
import { readRun } from '../../src/migration/runs/runs.ts';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import { describeWithPostgres } from '../support/servers/describe-with.ts';
import { runPostgres, startPostgres } from '../support/servers/postgres.ts';
import type { PrivateServer } from '../support/servers/private-server.ts';
import { startRedis, unusedPort } from '../support/redis.ts';
import { openTestStore } from '../support/store.ts';
import { createTool, ended, newFolder, writeSource, type Tool } from '../support/tools/migrate.ts';

type Line = Record<string, unknown>;

/** An apply that follows, in this process. */
interface Follower {
  /** Waits for a line of its output that is like this one. */
  until: (like: Line) => Promise<Line>;
  /** Stops it, as Ctrl-C does; its exit code. */
  stop: () => Promise<number>;
}

const running: Follower[] = [];

function follow(tool: Tool, ...args: string[]): Follower {
  const interrupt = new AbortController();
  const output = new PassThrough();
  const lines = createInterface({ input: output })[Symbol.asyncIterator]();
  let errors = '';
  const end = runMigrate(['apply', '--follow', '--json', ...args], {
    env: tool.env,
    out: (text) => void output.write(text),
    err: { write: (text) => (errors += text) },
    signal: interrupt.signal,
  }).finally(() => output.end());
  const follower: Follower = {
    until: async (like) => {
      for (;;) {
        const next = await lines.next();
        if (next.done === true) throw new Error(`it has ended: ${errors}`);
        const line = JSON.parse(next.value) as Line;
        if (Object.entries(like).every(([name, value]) => line[name] === value)) return line;
      }
    },
    stop: async () => {
      interrupt.abort();
      return await end;
    },
  };
  running.push(follower);
  return follower;
}

afterEach(async () => {
  for (const follower of running.splice(0)) await follower.stop();
});

const mapping = `entities:
  profiles:
    query: |
      SELECT organization AS "organizationId", id AS "userId", name AS username, changed AS "updatedAt" FROM players
    key: [organizationId, userId]
`;

function newMapping(): string {
  const file = join(newFolder(), 'map.yaml');
  writeFileSync(file, mapping);
  return file;
}

describeWithPostgres('apply --follow', () => {
  let server: PrivateServer;
  let url: string;
  const map = newMapping();

  beforeAll(async () => {
    server = await startPostgres();
    await runPostgres(server.url('postgres'), 'CREATE DATABASE legacy');
    url = server.url('legacy');
  });

  afterAll(async () => {
    await server?.stop();
  });

  const reset = async (): Promise<void> =>
    await runPostgres(
      url,
      'DROP TABLE IF EXISTS players',
      'CREATE TABLE players (organization text, id int PRIMARY KEY, name text, changed timestamptz DEFAULT now())',
      `INSERT INTO players SELECT 'acme', n, 'name-' || n, now() - interval '1 minute' * (101 - n) FROM generate_series(1, 100) AS n`,
    );
  const source = ['--mapping', map, '--run', 'r'];

  /** An apply that follows the table. */
  const followWith = (options: readonly string[] = [], tool = createTool()) =>
    follow(tool, '--source', url, ...source, '--lag', '1s', ...options);

  /** A new user gets the name of one who vanishes. */
  const replaceUser = async () =>
    await runPostgres(
      url,
      'DELETE FROM players WHERE id = 100',
      `INSERT INTO players VALUES ('acme', 101, 'name-100')`,
    );

  const applyAll = async () => {
    await reset();
    const tool = createTool();
    const args = ['apply', '--source', url, ...source];
    expect((await tool.json(...args)).exitCode).toBe(0);
    return { tool, args };
  };

  test('applies changes until it is stopped, and exits with 0', async () => {
    await reset();
    const tool = createTool();
    const follower = followWith([], tool);
    expect(await follower.until({ round: 1 })).toMatchObject({
      command: 'apply',
      state: 'applied',
      full: true,
      created: 100,
    });
    await runPostgres(url, `INSERT INTO players VALUES ('acme', 101, 'new')`);
    const { full, read, lagSeconds } = await follower.until({ created: 1 });
    expect(full).toBe(false);
    expect(read).toBeLessThan(10);
    expect(lagSeconds).toBeGreaterThan(0);
    await runPostgres(url, `UPDATE players SET name = 'newer', changed = now() WHERE id = 101`);
    await follower.until({ updated: 1 });
    expect(await follower.stop()).toBe(0);
    expect((await tool.contents())['profiles.ndjson']).toContain('"newer"');
    expect((await tool.json('status', '--run', 'r')).json).toMatchObject({ phase: 'finished' });
  });

  test('says in every round what was refused since the last full one, which tries it again', async () => {
    await reset();
    await runPostgres(url, `INSERT INTO players VALUES ('acme', 0, 'name-1', now() - interval '1 day')`);
    const args = [...source, '--on-conflict', 'skip'];
    const printed = await printedBy(['--source', url, ...args, '--full-every', '3s'], (text, stop) => {
      if (text.includes('(all), 1 created')) stop();
      if (text.includes('round 1:'))
        void runPostgres(url, `UPDATE players SET name = 'other', changed = now() WHERE id = 1`);
    });
    expect(printed).toMatch(/round 1: 101 rows read \(all\), 100 created, 0 updated, 1 refused; /);
    expect(printed).toMatch(/round 2: \d+ rows read, .*, 1 refused since the last full round; /);
    expect(printed).toMatch(/round \d: 101 rows read \(all\), 1 created, 0 updated; /);
  });

  test('finds in a full round changes that have no new timestamp, and prunes then', async () => {
    await reset();
    const follower = followWith(['--full-every', '3s', '--prune']);
    await follower.until({ round: 1 });
    await runPostgres(
      url,
      `INSERT INTO players VALUES ('acme', 102, 'late', now() - interval '1 hour')`,
      'DELETE FROM players WHERE id = 1',
    );
    expect(await follower.until({ created: 1 })).toMatchObject({ full: true, pruned: { profiles: 1 } });
    expect(await follower.stop()).toBe(0);
  });

  test.each([['--prune'], ['--trust-source'], ['--copy-pictures']])(
    'with %s, begins with a round that reads everything, however long ago the last full one was',
    async (option) => {
      const { tool } = await applyAll();
      const follower = followWith([option], tool);
      expect(await follower.until({ round: 1 })).toMatchObject({ state: 'applied', full: true, read: 100 });
      expect(await follower.until({ round: 2 })).toMatchObject({ state: 'applied', full: false });
      expect(await follower.stop()).toBe(0);
    },
  );

  test('a name that only a prune makes free is taken by a --follow that is started with it', async () => {
    const { tool } = await applyAll();
    await replaceUser();
    const follower = followWith(['--prune'], tool);
    expect(await follower.until({ round: 1 })).toMatchObject({
      state: 'applied',
      created: 1,
      pruned: { profiles: 1 },
    });
    expect(await follower.stop()).toBe(0);
  });

  test('continues by itself after the database and Redis were unavailable', async () => {
    await reset();
    const [folder, port] = [newFolder(), await unusedPort()];
    const redisArguments = ['--appendonly', 'yes', '--port', String(port)];
    const redis = await startRedis(redisArguments, folder);
    const follower = followWith([], createTool(redis.url));
    await follower.until({ round: 1, state: 'applied' });
    await runPostgres(
      server.url('postgres'),
      'ALTER DATABASE legacy ALLOW_CONNECTIONS false',
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'legacy'`,
    );
    const away = await follower.until({ state: 'failed', ok: false });
    expect(away['error']).toMatch(/legacy/);
    await runPostgres(server.url('postgres'), 'ALTER DATABASE legacy ALLOW_CONNECTIONS true');
    await follower.until({ state: 'applied' });

    await redis.stop();
    const lost = await follower.until({ state: 'failed' });
    expect(lost['lagSeconds']).toBeGreaterThan(0);
    const again = await startRedis(redisArguments, folder);
    await runPostgres(url, `INSERT INTO players VALUES ('acme', 103, 'after')`);
    await follower.until({ state: 'applied', created: 1 });
    expect(await follower.stop()).toBe(0);
    await again.stop();
  });

  test('does not miss a transaction that was open during the round before', async () => {
    await reset();
    const tool = createTool();
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query('BEGIN');
    await client.query(`INSERT INTO players VALUES ('acme', 104, 'slow')`);
    const { rows } = await client.query<{ began: string }>(
      'SELECT extract(epoch FROM now()) * 1000 AS began',
    );
    const args = ['apply', '--source', url, ...source];
    expect(await tool.json(...args)).toMatchObject({ exitCode: 0, json: { created: 100 } });
    const store = await openTestStore();
    const highWater = (await readRun({ store, prefix: tool.prefix }, 'r'))?.highWater;
    await closeRedis(store);
    expect(highWater).toBeLessThanOrEqual(Math.ceil(Number(rows[0]?.began)));
    await client.query('COMMIT');
    await client.end();
    expect(await tool.json(...args)).toMatchObject({ exitCode: 0, json: { full: false, created: 1 } });
  });

  test('is not needed to read everything: an apply that trusts the source does, too', async () => {
    await reset();
    const tool = createTool();
    const args = ['apply', '--source', url, ...source];
    await runPostgres(url, `UPDATE players SET changed = now() + interval '1 year' WHERE id = 50`);
    await tool.json(...args);
    await runPostgres(
      url,
      `UPDATE players SET name = 'right', changed = now() - interval '1 hour' WHERE id = 50`,
    );
    expect((await tool.json(...args)).json).toMatchObject({ full: false, updated: 0 });
    expect((await tool.json(...args, '--trust-source')).json).toMatchObject({ full: true, updated: 1 });
    expect((await tool.json('verify', '--source', url, ...source)).exitCode).toBe(0);
  });

  test('is not needed to learn why all rows are read, either: an apply says so', async () => {
    const { tool, args } = await applyAll();
    const why = async (...options: string[]) => {
      const { exitCode, out } = await tool.text(...args, ...options);
      expect(exitCode).toBe(0);
      return /^All rows were read: (.*)\.$/m.exec(out)?.[1];
    };
    expect(await why()).toBeUndefined();
    expect(await why('--prune')).toBe('--prune needs all of them');
    expect(await why('--org', 'acme')).toBe('the last round was of other entities or organizations');
    expect(await why('--org', 'acme')).toBeUndefined();
    await runPostgres(url, "UPDATE players SET name = 'late' WHERE id = 1");
    await tool.json('verify', ...args.slice(1));
    expect(await why('--org', 'acme')).toMatch(/^since the last time, a verify has found differences/);
    expect(await why('--org', 'acme', '--fresh')).toBeUndefined();
    await runPostgres(url, 'UPDATE players SET changed = NULL');
    expect(await why('--org', 'acme', '--fresh')).toBeUndefined();
    expect(await why('--org', 'acme')).toMatch(/^the last one found no updatedAt/);
  });

  test('a clock that is set back neither delays the next rounds nor hides how old the last full one is', async () => {
    await reset();
    const now = Date.now;
    const clock = jest.spyOn(Date, 'now');
    try {
      const printed = await printedBy(['--source', url, ...source], (text, stop) => {
        if (text.includes('round 1:')) clock.mockImplementation(() => now() - 3_600_000);
        if (text.includes('round 3:')) stop();
      });
      expect(printed).toMatch(/round 2: 100 rows read \(all\), .*; \d+\.\d s behind\n/);
      expect(printed).toMatch(/round 3: \d+ rows read, .*; \d+\.\d s behind\n/);
    } finally {
      clock.mockRestore();
    }
  });

  /** Applies the source, then gives a row's name to another one; what frees it carries an early time, as a late commit does. */
  const applyThenMoveName = async () => {
    const applied = await applyAll();
    await runPostgres(
      url,
      `UPDATE players SET name = 'new', changed = changed + interval '1 second' WHERE id = 1`,
      `UPDATE players SET name = 'name-1', changed = now() WHERE id = 100`,
    );
    return applied;
  };

  test('reads everything when it is started again after it was refused a name that a late change has freed', async () => {
    const { tool } = await applyThenMoveName();
    const follower = followWith([], tool);
    await follower.until({ round: 1, state: 'refused', full: false });
    const next = followWith([], tool);
    expect(await next.until({ round: 1 })).toMatchObject({ state: 'applied', full: true, updated: 2 });
    expect(await next.stop()).toBe(0);
  });

  test('a name that only a prune makes free is taken in the next round, however long ago the last full one was', async () => {
    await reset();
    const follower = followWith(['--prune']);
    await follower.until({ round: 1, ok: true });
    await replaceUser();
    await follower.until({ state: 'refused', full: false });
    const next = await follower.until({ full: true });
    expect(next).toMatchObject({ state: 'applied', created: 1, pruned: { profiles: 1 } });
    expect(await follower.until({})).toMatchObject({ state: 'applied', full: false });
    // Where that does not help, only one round reads everything.
    await runPostgres(url, `INSERT INTO players VALUES ('acme', 102, 'name-1')`);
    const rounds = [
      await follower.until({ state: 'refused' }),
      await follower.until({}),
      await follower.until({}),
    ];
    expect(rounds.map(({ state, full }) => [state, full])).toEqual([
      ['refused', false],
      ['refused', true],
      ['refused', false],
    ]);
    expect(await follower.stop()).toBe(1);
  });

  test('without --prune, rounds that are refused such a name say what a prune does', async () => {
    await reset();
    const follower = followWith();
    await follower.until({ round: 1, ok: true });
    await replaceUser();
    const [changed, all] = [await follower.until({ state: 'refused' }), await follower.until({ full: true })];
    expect([changed['full'], changed['error']]).toEqual([
      false,
      expect.stringContaining(
        'nothing was written: use --prune if the users who have the names are no longer in the source, correct',
      ),
    ]);
    expect(all['error']).toContain(
      'nothing was written: use --prune, which removes users who are not in the source, correct',
    );
    expect(await follower.stop()).toBe(1);
  });

  test('any apply that is refused a name makes the next one read everything, and says so', async () => {
    const { tool, args } = await applyThenMoveName();
    const refused = await tool.json(...args);
    expect(refused).toMatchObject({ exitCode: 1, json: { state: 'refused', full: false } });
    expect(refused.err).toContain('run the same command again (it will read everything), correct the source');
    expect(await tool.json(...args)).toMatchObject({ exitCode: 0, json: { full: true, updated: 2 } });
    expect(await tool.json(...args)).toMatchObject({ exitCode: 0, json: { full: false, updated: 0 } });
  });
});

test('a problem in the first round ends it, as it ends any apply', async () => {
  const tool = createTool();
  const profile = { organizationId: 'acme', username: 'same' };
  const source = writeSource({ profiles: ['1', '2'].map((userId) => ({ ...profile, userId })) });
  expect(await tool.json('apply', '--source', source, '--follow')).toMatchObject({
    exitCode: 1,
    json: { round: 1, state: 'refused', conflicts: 1 },
    err: expect.stringContaining('nothing was written'),
  });
});

test('a pause longer than a timer can take is kept', async () => {
  const source = writeSource({ profiles: [{ organizationId: 'acme', userId: 'u1' }] });
  const child = createTool().start('apply', '--source', source, '--follow', '--lag', '60d');
  const end = ended(child);
  await once(child.stdout as Readable, 'data');
  await sleep(500);
  child.kill('SIGINT');
  const { code, out } = await end;
  expect({ code, rounds: out.trim().split('\n').length }).toEqual({ code: 0, rounds: 1 });
});

/** Follows in this process, for people; all that was printed until `onPrinted` has stopped it. */
async function printedBy(
  args: readonly string[],
  onPrinted: (text: string, stop: () => void) => void,
): Promise<string> {
  const interrupt = new AbortController();
  let printed = '';
  const print = (text: string): void => {
    printed += text;
    onPrinted(text, () => interrupt.abort());
  };
  await runMigrate(['apply', '--follow', '--lag', '1s', ...args], {
    env: createTool().env,
    out: print,
    err: { write: print },
    signal: interrupt.signal,
  });
  return printed;
}

test.each([
  ['with updatedAt', Date.now()],
  ['without updatedAt', undefined],
])('every round of files %s reads all rows, and says so', async (_, updatedAt) => {
  const tool = createTool();
  const user = (userId: string, username = userId) => ({
    organizationId: 'acme',
    userId,
    username,
    updatedAt,
  });
  const source = writeSource({ profiles: [user('ada'), user('eve')] });
  const args = ['--source', source, '--run', 'r'];
  await tool.json('apply', ...args);
  const follower = follow(tool, ...args, '--lag', '1s', '--prune', '--prune-at-most', '1');
  for (const round of [1, 2]) expect(await follower.until({ round })).toMatchObject({ full: true, read: 2 });
  writeSource({ profiles: [user('ada')] }, source);
  // It prunes only as often as --full-every says.
  const { full, pruned } = await follower.until({ read: 1 });
  expect({ full, pruned }).toEqual({ full: true, pruned: {} });
  expect(await follower.stop()).toBe(0);

  writeSource({ profiles: [user('ada'), user('other', 'ada')] }, source);
  const refused = await tool.json('apply', ...args);
  expect(refused).toMatchObject({ exitCode: 1, json: { state: 'refused', full: true } });
  expect(refused.err).not.toContain('it will read everything');
});

test('a round says how many records it has removed', async () => {
  const profiles = Array.from({ length: 20 }, (_, id) => ({ organizationId: 'acme', userId: `u${id}` }));
  const source = writeSource({ profiles });
  const printed = await printedBy(['--source', source, '--full-every', '1s', '--prune'], (text, stop) => {
    if (text.includes('round 1:')) writeSource({ profiles: profiles.slice(1) }, source);
    if (text.includes('round 3:')) stop();
  });
  expect(printed).toMatch(/round \d: 19 rows read \(all\), 0 created, 0 updated, 1 removed; /);
});

test('the problems for which rounds are refused are shown once', async () => {
  const source = writeSource({ profiles: [{ organizationId: 'acme', userId: 'u1' }] });
  const printed = await printedBy(['--source', source], (text, stop) => {
    if (text.includes('round 1:')) writeSource({ profiles: [{ organizationId: 'acme' }] }, source);
    if (text.includes('round 3:')) stop();
  });
  expect(printed.match(/Z round [23]: 1 record has a problem, so nothing was written/g)).toHaveLength(2);
  expect(printed.match(/profiles\.ndjson:1 \(organization "acme"\) {2}userId is missing/g)).toHaveLength(1);
});

test('records that a later round leaves out are listed once', async () => {
  const profile = { organizationId: 'acme', userId: 'u1' };
  const source = writeSource({ profiles: [profile] });
  const args = ['--source', source, '--on-conflict', 'skip'];
  const printed = await printedBy(args, (text, stop) => {
    if (text.includes('round 1:')) writeSource({ profiles: [profile, { organizationId: 'acme' }] }, source);
    if (text.includes('round 4:')) stop();
  });
  expect(printed).toMatch(/Z round 3: 2 rows read .* 1 refused/);
  expect(printed.match(/profiles\.ndjson:2 \(organization "acme"\) {2}userId is missing/g)).toHaveLength(1);
});

test('a run that is forgotten between two rounds is not followed any more', async () => {
  const tool = createTool();
  const source = writeSource({ profiles: [{ organizationId: 'acme', userId: 'u1' }] });
  const follower = follow(tool, '--source', source, '--run', 'r', '--lag', '3s');
  await follower.until({ round: 1 });
  expect(await tool.json('forget', '--run', 'r', '--yes')).toMatchObject({ exitCode: 0 });
  await expect(follower.until({ round: 2 })).rejects.toThrow('run r is gone from Redis');
  expect((await tool.json('status')).json).toMatchObject({ runs: [] });
});

test.each([
  ['has failed', 'failed', rmSync],
  ['was refused', 'refused', (file: string) => writeFileSync(file, '{"organizationId":"acme"}\n')],
])('a follower whose last round %s exits with 1 when it is stopped', async (_, state, spoil) => {
  const source = writeSource({ profiles: [{ organizationId: 'acme', userId: 'u1' }] });
  const follower = follow(createTool(), '--source', source, '--lag', '1s');
  await follower.until({ round: 1, ok: true });
  spoil(join(source, 'profiles.ndjson'));
  await follower.until({ state, ok: false });
  expect(await follower.stop()).toBe(1);
});

test('an entity that vanishes is a problem, until it is back', async () => {
  const tool = createTool();
  const profiles = [{ organizationId: 'acme', userId: 'u1' }];
  const source = writeSource({ organizations: [{ organizationId: 'acme' }], profiles });
  const follower = follow(tool, '--source', source, '--lag', '1s');
  await follower.until({ round: 1 });
  rmSync(join(source, 'profiles.ndjson'));
  const failed = await follower.until({ state: 'failed' });
  expect(failed['error']).toBe(`${source} no longer has profiles: put them back`);
  writeSource({ profiles: [...profiles, { organizationId: 'acme', userId: 'u2' }] }, source);
  await follower.until({ state: 'applied', created: 1 });
  expect(await follower.stop()).toBe(0);
});
