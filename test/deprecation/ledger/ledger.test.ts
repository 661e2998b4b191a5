import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, jest, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { createLog } from '../../../src/log.ts';
import { findGaps, readCoverage } from '../../../src/deprecation/ledger/coverage.ts';
import { dayMs, dayOf } from '../../../src/lib/days.ts';
import { totalOf } from '../../../src/lib/numbers.ts';
import { createLedger, type LedgerOptions } from '../../../src/deprecation/ledger/ledger.ts';
import { tallyLimits, type Call } from '../../../src/deprecation/ledger/tally.ts';
import { organizationsKey } from '../../../src/redis/keys.ts';
import { freshPrefix, startRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { interceptCalls, keysOf } from '../../support/store.ts';
import { useCleanup, useTestStore } from '../../support/use-store.ts';

const log = createLog('silent');
const NOON = Date.parse('2027-03-01T12:00:00Z');
const redis = await useTestStore();
const toClose = useCleanup();

const call = (organizationId: string, keyId: string | undefined, more: Partial<Call> = {}): Call => ({
  organizationId,
  keyId,
  operation: 'getProfile',
  status: 200,
  ...more,
});
/** Flushed by hand, so that tests wait for nothing. */
const openLedger = (prefix: string, options: Partial<LedgerOptions> = {}, client = redis) => {
  const ledger = createLedger(client, prefix, { log, now: () => NOON, flushMs: 1_000_000, ...options });
  toClose.push(ledger.close);
  return ledger;
};
const counts = (prefix: string, organization: string, day = '2027-03-01') =>
  redis.hgetall(`${prefix}{${organization}}:use:${day}`);

describe('the ledger', () => {
  test('writes calls by day, key, operation and status class', async () => {
    const prefix = freshPrefix();
    let now = NOON;
    const ledger = openLedger(prefix, { now: () => now });
    ledger.record(call('acme', 'k_1', { client: 'ios-4.2', userAgent: 'App/1' }));
    ledger.record(call('acme', 'k_1', { status: 404 }));
    ledger.record(call('acme', 'k_1', { status: 201, operation: 'putProfile' }));
    now += 86_400_000;
    ledger.record(call('acme', 'k_1', { userAgent: 'App/\u001b[2J2' }));
    ledger.record(call('acme', 'k_1', { status: 404, userAgent: 'App/1' }));
    await ledger.flush();
    expect(await counts(prefix, 'acme')).toEqual({
      'k_1|getProfile|2xx': '1',
      'k_1|getProfile|4xx': '1',
      'k_1|putProfile|2xx': '1',
    });
    expect(await counts(prefix, 'acme', '2027-03-02')).toEqual({
      'k_1|getProfile|2xx': '1',
      'k_1|getProfile|4xx': '1',
    });
    expect(await redis.hgetall(`${prefix}{acme}:use:key:k_1`)).toEqual({
      c: 'ios-4.2',
      'f:getProfile': `${NOON}`,
      'l:getProfile': `${now}`,
      'f:putProfile': `${NOON}`,
      'l:putProfile': `${NOON}`,
      'a:App/1': `${now}`,
      'a:App/[2J2': `${now}`,
    });
  });

  test('goes by the clock of Redis, where that of its machine differs by days, or is set meanwhile', async () => {
    const prefix = freshPrefix();
    const trueNow = Date.now.bind(Date);
    const before = trueNow();
    const { timeOrigin } = performance;
    for (const by of [-3 * dayMs, 3 * dayMs]) {
      Object.defineProperty(performance, 'timeOrigin', { value: timeOrigin + by, configurable: true });
      const clock = jest.spyOn(Date, 'now').mockImplementation(() => trueNow() + by);
      try {
        const ledger = createLedger(redis, prefix, { log, flushMs: 1_000_000 });
        await ledger.flush();
        clock.mockImplementation(() => trueNow() - by);
        ledger.record(call('acme', 'k_1'));
        clock.mockImplementation(() => trueNow() + by);
        await ledger.close();
      } finally {
        clock.mockRestore();
        Reflect.deleteProperty(performance, 'timeOrigin');
      }
    }
    const used = await redis.hgetall(`${prefix}{acme}:use:key:k_1`);
    const alive = await readCoverage(redis, prefix, { start: before - 5 * dayMs, end: before + 5 * dayMs });
    const times = [
      used['f:getProfile'],
      used['l:getProfile'],
      ...alive.flatMap((one) => [one.start, one.end]),
    ];
    expect(alive.length).toBeGreaterThanOrEqual(2);
    // Within a minute, since the clocks of this process and of Redis need not be exactly equal.
    for (const at of times) {
      expect(Number(at)).toBeGreaterThan(before - 60_000);
      expect(Number(at)).toBeLessThan(trueNow() + 60_000);
    }
  });

  test('replaces keys of a wrong type that another program has written, and loses no call', async () => {
    const prefix = freshPrefix();
    const ledger = openLedger(prefix);
    for (const key of ['key:k_1', 'keys', '2027-03-01']) await redis.set(`${prefix}{acme}:use:${key}`, 'x');
    ledger.record(call('acme', 'k_1'));
    await ledger.flush();
    await ledger.flush();
    expect(await counts(prefix, 'acme')).toEqual({ 'k_1|getProfile|2xx': '1' });
    expect(await redis.hget(`${prefix}{acme}:use:key:k_1`, 'l:getProfile')).toBe(`${NOON}`);
    expect(await redis.zrange(`${prefix}{acme}:use:keys`, '0', '-1')).toEqual(['k_1']);
  });

  test('keeps counting where another program has written a field that is not a number', async () => {
    const prefix = freshPrefix();
    const ledger = openLedger(prefix);
    const key = `${prefix}{acme}:use:key:k_1`;
    const junk = { 'f:getProfile': 'x', 'l:getProfile': 'x', 'a:App/1': 'x', 'a:App/2': 'x' };
    await redis.hset(key, junk);
    await redis.hset(`${prefix}{acme}:use:2027-03-01`, 'k_1|getProfile|2xx', 'x');
    ledger.record(call('acme', 'k_1', { userAgent: 'App/1' }));
    ledger.record(call('acme', 'k_1', { userAgent: 'App/3', operation: 'putProfile' }));
    ledger.record(call('acme', 'k_2'));
    await ledger.flush();
    await ledger.flush();
    expect(await counts(prefix, 'acme')).toEqual({
      'k_1|getProfile|2xx': '1',
      'k_1|putProfile|2xx': '1',
      'k_2|getProfile|2xx': '1',
    });
    const { 'f:getProfile': first, 'l:getProfile': last, 'a:App/1': seen } = await redis.hgetall(key);
    expect([first, last, seen]).toEqual([`${NOON}`, `${NOON}`, `${NOON}`]);
  });

  test('forgets after 400 days by the clock of Redis, whatever the clock of its host says', async () => {
    const prefix = freshPrefix();
    await redis.sadd(organizationsKey(prefix), 'acme');
    const [today, longAgo] = [Date.now(), Date.now() - 402 * 86_400_000];
    await redis.zadd(`${prefix}{acme}:use:keys`, today, 'k_today', longAgo, 'k_long-ago');
    const organizations = `${prefix}deprecation:orgs`;
    await redis.zadd(organizations, dayOf(today), 'today', dayOf(longAgo), 'long-ago');
    const ledger = openLedger(prefix, { now: () => today + 500 * 86_400_000 });
    ledger.record(call('acme', 'k_1'));
    await ledger.flush();
    expect(await redis.zrange(`${prefix}{acme}:use:keys`, '0', '-1')).toEqual(['k_today', 'k_1']);
    expect(await redis.zrange(organizations, '0', '-1')).toEqual(['today', 'acme']);
  });

  test('sets an expiry on everything it writes', async () => {
    const prefix = freshPrefix();
    await redis.sadd(organizationsKey(prefix), 'acme');
    const ledger = openLedger(prefix, { now: Date.now });
    ledger.record(call('acme', 'k_1', { userAgent: 'App/1' }));
    ledger.record(call('acme', undefined, { status: 401 }));
    ledger.record(call('junk', undefined, { status: 401 }));
    await ledger.close();
    const keys = await keysOf(redis, prefix);
    const forever = new Set([organizationsKey(prefix), `${prefix}deprecation:orgs`]);
    expect(keys.length).toBeGreaterThan(8);
    for (const key of keys) {
      const days = (await redis.ttl(key)) / 86_400;
      if (forever.has(key)) continue;
      expect(days).toBeGreaterThan(0);
      expect(days).toBeLessThanOrEqual(401);
    }
  });

  test('counts every call once over several instances, a restart and a shutdown', async () => {
    const prefix = freshPrefix();
    const made = new Map<string, number>();
    const makeCalls = (ledger: ReturnType<typeof openLedger>, calls: number) => {
      for (let i = 0; i < calls; i += 1) {
        const keyId = `k_${(i * 7) % 501}`;
        const operation = i % 3 === 0 ? 'putProfile' : 'getProfile';
        const status = [200, 204, 404][i % 3] ?? 200;
        const field = `${keyId}|${operation}|${Math.floor(status / 100)}xx`;
        made.set(field, (made.get(field) ?? 0) + 1);
        ledger.record(call('acme', keyId, { operation, status }));
      }
    };
    const [first, second] = [openLedger(prefix), openLedger(prefix)];
    makeCalls(first, 5000);
    makeCalls(second, 3000);
    await Promise.all([first.flush(), second.flush()]);
    makeCalls(first, 777);
    await first.close();
    const restarted = openLedger(prefix);
    makeCalls(restarted, 1234);
    makeCalls(second, 99);
    await Promise.all([restarted.close(), second.close()]);
    const written = await counts(prefix, 'acme');
    expect(Object.fromEntries(Object.entries(written).map(([field, n]) => [field, Number(n)]))).toEqual(
      Object.fromEntries(made),
    );
    expect(Object.values(written).reduce((sum, n) => sum + Number(n), 0)).toBe(5000 + 3000 + 777 + 1234 + 99);
  });

  test('creates no Redis key for an unknown organization, and counts the calls of all unknown ones together', async () => {
    const prefix = freshPrefix();
    await redis.sadd(organizationsKey(prefix), 'acme', 'a}b');
    const ledger = openLedger(prefix);
    for (let i = 0; i < 50; i += 1) ledger.record(call(`junk-${i}`, undefined, { status: 401 }));
    ledger.record({ operation: 'getProfile', status: 401 });
    ledger.record(call('acme', undefined, { status: 401 }));
    ledger.record(call('a}b', undefined, { status: 401 }));
    await ledger.flush();
    expect((await keysOf(redis, prefix)).filter((key) => key.includes('junk'))).toEqual([]);
    expect(await redis.hgetall(`${prefix}deprecation:{unknown}:use:2027-03-01`)).toEqual({
      '-|getProfile|4xx': '51',
    });
    expect(await counts(prefix, 'acme')).toEqual({ '-|getProfile|4xx': '1' });
    expect(await counts(prefix, 'a%7Db')).toEqual({ '-|getProfile|4xx': '1' });
    expect(await redis.zrange(`${prefix}deprecation:orgs`, '0', '-1')).toEqual(['acme', 'a}b']);
  });

  test('does not count a batch twice if its reply was lost', async () => {
    const prefix = freshPrefix();
    const replies: unknown[] = [];
    let lose = true;
    const lossy = interceptCalls(redis, async (make, command) => {
      const reply = await make();
      if (!['evalsha', 'eval'].includes(command)) return reply;
      replies.push(reply);
      if (lose) throw new Error('Connection is closed.');
      return reply;
    });
    const ledger = openLedger(prefix, {}, lossy);
    for (let i = 0; i < 1000; i += 1) ledger.record(call('acme', `k_${i}`));
    await ledger.flush();
    ledger.record(call('acme', 'k_0'));
    await ledger.flush();
    lose = false;
    await ledger.flush();
    await ledger.close();
    expect(replies.slice(0, 3)).toEqual(['recorded', 'already', 'already']);
    const written = Object.values(await counts(prefix, 'acme'));
    expect(written.reduce((sum, n) => sum + Number(n), 0)).toBe(1001);
  });

  test('remembers recorded batches for as long as their counts, so that an outage may have any length', async () => {
    const prefix = freshPrefix();
    await redis.sadd(organizationsKey(prefix), 'acme');
    const ledger = openLedger(prefix, { now: Date.now });
    ledger.record(call('acme', 'k_1'));
    await ledger.flush();
    const keys = await keysOf(redis, prefix);
    const marks = keys.filter((key) => key.includes(':use:flush:'));
    const days = keys.filter((key) => /:use:\d/.test(key));
    expect([marks.length, days.length]).toEqual([1, 1]);
    const [mark = 0, day = 0] = await Promise.all([...marks, ...days].map((key) => redis.pexpiretime(key)));
    // Counts expire at the end of a day: a batch recorded just before is remembered a day less, at most.
    expect(mark).toBeGreaterThan(day - 2 * 86_400_000);
  });

  test('remembers a limited number of user agents for each key, the latest ones', async () => {
    const prefix = freshPrefix();
    let now = NOON;
    const ledger = openLedger(prefix, { now: () => now });
    for (let i = 0; i < 2 * tallyLimits.agents; i += 1) {
      now += 1000;
      ledger.record(call('acme', 'k_1', { userAgent: `App/${i}` }));
      await ledger.flush();
    }
    const key = await redis.hgetall(`${prefix}{acme}:use:key:k_1`);
    const agents = Object.keys(key).filter((field) => field.startsWith('a:'));
    expect(agents.sort()).toEqual(
      Array.from({ length: tallyLimits.agents }, (_, i) => `a:App/${i + tallyLimits.agents}`).sort(),
    );
  });

  test.each([
    ['the earlier', 0],
    ['the later', 1],
  ])('keeps the first and last use of a key, if the instance with %s one writes first', async (_what, at) => {
    const prefix = freshPrefix();
    const ledgers = [openLedger(prefix), openLedger(prefix, { now: () => NOON + 5000 })];
    // What a new ledger writes at once would have the calls.
    for (const ledger of ledgers) await ledger.flush();
    for (const ledger of ledgers) ledger.record(call('acme', 'k_1', { userAgent: 'App/1' }));
    await ledgers[at]?.flush();
    await ledgers[1 - at]?.flush();
    expect(await redis.hgetall(`${prefix}{acme}:use:key:k_1`)).toEqual({
      'f:getProfile': `${NOON}`,
      'l:getProfile': `${NOON + 5000}`,
      'a:App/1': `${NOON + 5000}`,
    });
  });

  test('dates a key by its last use, of whichever operation and instance', async () => {
    const prefix = freshPrefix();
    const now = Date.now();
    const usedAt = async () => await redis.zscore(`${prefix}{acme}:use:keys`, 'k_1');
    let at = now;
    const ledger = openLedger(prefix, { now: () => at });
    ledger.record(call('acme', 'k_1'));
    at = now - 5000;
    ledger.record(call('acme', 'k_1', { operation: 'putProfile' }));
    await ledger.flush();
    expect(await usedAt()).toBe(`${now}`);
    ledger.record(call('acme', 'k_1', { operation: 'putProfile' }));
    await ledger.flush();
    expect(await usedAt()).toBe(`${now}`);
  });

  test('keeps the client of a key over calls that name none', async () => {
    const prefix = freshPrefix();
    const ledger = openLedger(prefix);
    for (const client of ['ios-4.2', undefined]) {
      ledger.record(call('acme', 'k_1', { client }));
      await ledger.flush();
    }
    expect(await redis.hget(`${prefix}{acme}:use:key:k_1`, 'c')).toBe('ios-4.2');
  });

  test('counts on while Redis is unavailable, and writes everything afterwards', async () => {
    const { calls, gaps, close } = await callThroughOutage(['--appendonly', 'yes']);
    expect([await calls(), await gaps()]).toEqual([61, []]);
    await close();
  });

  test('has a gap where Redis comes back without what was written', async () => {
    const warn = jest.spyOn(log, 'warn');
    const { calls, gaps, close, now } = await callThroughOutage([]);
    expect([await calls(), await gaps()]).toEqual([60, [{ start: NOON, end: now }]]);
    expect(warn.mock.calls.at(-1)?.[0]).toMatch(/^Redis has lost data/);
    warn.mockRestore();
    await close();
  });

  test('has a gap where only what was written of one organization is lost, whoever else was counting', async () => {
    const prefix = freshPrefix();
    let now = NOON;
    const ledgers = [openLedger(prefix, { now: () => now }), openLedger(prefix, { now: () => now })];
    const flush = () => Promise.all(ledgers.map((ledger) => ledger.flush()));
    const countAt = async (time: number, ...organizations: string[]) => {
      now = time;
      for (const organization of organizations) ledgers[0]?.record(call(organization, 'k_1'));
      await flush();
    };
    await countAt(NOON, 'acme', 'other');
    await countAt(NOON + 120_000, 'acme', 'other');
    const mark = (await keysOf(redis, prefix)).find((key) => key.includes('{acme}:use:flush:')) ?? '';
    const atFirst = await redis.get(mark);
    await countAt(NOON + 123_000, 'acme');
    await redis.set(mark, atFirst ?? '');
    await countAt(NOON + 126_000, 'acme', 'other');
    await countAt(NOON + 600_000, 'acme');
    expect(await gapsFromNoon(prefix, now)).toEqual([{ start: NOON + 120_000, end: NOON + 180_000 }]);
  });

  test('has a gap where what was written of an organization that no longer calls is lost', async () => {
    const prefix = freshPrefix();
    let now = NOON;
    const ledger = openLedger(prefix, { now: () => now });
    await ledger.flush();
    now += 110_000;
    ledger.record(call('acme', 'k_1'));
    now += 10_000;
    await ledger.flush();
    await redis.unlink((await keysOf(redis, prefix)).filter((key) => key.includes('{acme}')));
    now += 3000;
    await ledger.flush();
    expect(await gapsFromNoon(prefix, now)).toEqual([{ start: NOON, end: NOON + 120_000 }]);
  });

  test('looks again only at what it wrote in the seconds before', async () => {
    const prefix = freshPrefix();
    let now = NOON;
    const looks: unknown[] = [];
    const watched = interceptCalls(redis, (make, command, args) => {
      if (command === 'get') looks.push(...args);
      return make();
    });
    const ledger = openLedger(prefix, { now: () => now }, watched);
    for (const keyId of ['k_1', 'k_2']) {
      ledger.record(call('acme', keyId));
      await ledger.flush();
    }
    ledger.record(call('other', 'k_1'));
    looks.length = 0;
    await ledger.flush();
    expect(looks).toEqual([expect.stringContaining('{acme}')]);
    now += 60_000;
    await ledger.flush();
    looks.length = 0;
    await ledger.flush();
    expect(looks).toEqual([]);
  });

  test('gives up on shutdown if Redis stays unavailable', async () => {
    const server = await startRedis();
    const client = new Redis(server.url, { retryStrategy: () => 10, maxRetriesPerRequest: null });
    client.on('error', () => {});
    const error = jest.spyOn(log, 'error');
    const ledger = openLedger('pb:', { closeMs: 20 }, client);
    await ledger.flush();
    await server.stop();
    ledger.record(call('acme', 'k_1'));
    await ledger.close();
    client.disconnect();
    expect(error.mock.calls).toEqual([
      ['calls were counted but could not be written; coverage shows a gap', { calls: 1 }],
    ]);
    error.mockRestore();
  });
});

/** Writes a call, counts one a second for a minute in which Redis is stopped, and writes those once it is back. */
async function callThroughOutage(options: string[]) {
  const folder = await mkdtemp(path.join(tmpdir(), 'ledger-'));
  const server = await startRedis(options, folder);
  const client = new Redis(server.url, { maxRetriesPerRequest: 0, retryStrategy: () => 10 });
  client.on('error', () => {});
  let now = NOON;
  const ledger = openLedger('pb:', { now: () => now }, client);
  ledger.record(call('acme', 'k_1'));
  await ledger.flush();
  await server.stop();
  for (let second = 0; second < 60; second += 1) {
    now += 1000;
    ledger.record(call('acme', `k_${second}`));
    if (second % 3 === 0) await ledger.flush();
  }
  expect(ledger.lagSeconds()).toBe(60);
  const again = await startRedis(['--port', String(server.port), ...options], folder);
  await new Promise((resolve) => (client.status === 'ready' ? resolve(0) : client.once('ready', resolve)));
  await ledger.flush();
  expect(ledger.lagSeconds()).toBe(0);
  return {
    now,
    calls: async () => totalOf(Object.values(await client.hgetall('pb:{acme}:use:2027-03-01')).map(Number)),
    gaps: async () => {
      const range = { start: NOON, end: now };
      return findGaps(await readCoverage(client, 'pb:', range), range, now);
    },
    close: async () => {
      await ledger.close();
      client.disconnect();
      await again.stop();
      await rm(folder, { recursive: true });
    },
  };
}

/** What was not measured from noon to a time, as it is then. */
async function gapsFromNoon(prefix: string, end: number) {
  const range = { start: NOON, end };
  return findGaps(await readCoverage(redis, prefix, range), range, end);
}

describe('coverage', () => {
  test('records for each day when an instance was running, across midnight too', async () => {
    const prefix = freshPrefix();
    let now = Date.parse('2027-03-01T22:00:00Z');
    const ledger = openLedger(prefix, { now: () => now });
    await ledger.flush();
    now = Date.parse('2027-03-03T01:00:00Z');
    await ledger.flush();
    now += 60_000;
    await ledger.close();
    const range = { start: NOON, end: now };
    const alive = await readCoverage(redis, prefix, range);
    expect(alive.map(({ start, end, state }) => [new Date(start), new Date(end), state])).toEqual([
      [new Date('2027-03-01T22:00:00Z'), new Date('2027-03-02T00:00:00Z'), 'on'],
      [new Date('2027-03-02T00:00:00Z'), new Date('2027-03-03T00:00:00Z'), 'on'],
      [new Date('2027-03-03T00:00:00Z'), new Date('2027-03-03T01:01:00Z'), 'closed'],
    ]);
    expect(findGaps(alive, range, now)).toEqual([{ start: NOON, end: Date.parse('2027-03-01T22:00:00Z') }]);
  });

  test('is recorded after a clock was set back to a time before the start', async () => {
    const prefix = freshPrefix();
    let now = NOON + 3_600_000;
    const ledger = openLedger(prefix, { now: () => now });
    await ledger.flush();
    now = NOON;
    await ledger.flush();
    now += 600_000;
    await ledger.flush();
    expect(await gapsFromNoon(prefix, now)).toEqual([]);
  });

  test('is not recorded for days to come once a clock that was ahead is set back', async () => {
    const prefix = freshPrefix();
    let now = NOON;
    const ledger = openLedger(prefix, { now: () => now });
    await ledger.flush();
    now += 3 * 86_400_000;
    await ledger.flush();
    now = NOON + 60_000;
    await ledger.close();
    const later = NOON + 10 * 86_400_000;
    const range = { start: NOON, end: later };
    expect(findGaps(await readCoverage(redis, prefix, range), range, later)).toEqual([
      { start: NOON + 60_000, end: later },
    ]);
  });

  test('has a gap where an instance crashed within its first flush interval', async () => {
    const prefix = freshPrefix();
    let now = NOON;
    openLedger(prefix, { now: () => now });
    const living = openLedger(prefix, { now: () => now });
    await living.flush();
    await until(async () => (await readCoverage(redis, prefix, { start: NOON, end: NOON + 1 })).length === 2);
    now += 600_000;
    await living.flush();
    expect(await gapsFromNoon(prefix, now)).toEqual([{ start: NOON, end: NOON + 60_000 }]);
  });

  test('has a gap where the last calls could not be written on shutdown, though earlier ones could', async () => {
    const prefix = freshPrefix();
    let now = NOON;
    let writes = 0;
    const failing = interceptCalls(redis, (make, command) => {
      if (command === 'evalsha' && writes-- <= 0) throw new Error('OOM command not allowed');
      return make();
    });
    const ledger = openLedger(prefix, { now: () => now }, failing);
    const living = openLedger(prefix, { now: () => now });
    ledger.record(call('acme', 'k_1'));
    await ledger.flush();
    ledger.record(call('acme', 'k_2'));
    writes = 1;
    await ledger.close();
    expect(await counts(prefix, 'acme')).toEqual({ 'k_1|getProfile|2xx': '1' });
    now += 600_000;
    await living.flush();
    expect(await gapsFromNoon(prefix, now)).toEqual([{ start: NOON, end: NOON + 60_000 }]);
  });

  test('has a gap where an instance crashed while it recorded more than one day', async () => {
    const prefix = freshPrefix();
    let now = Date.parse('2027-03-01T22:00:00Z');
    let days = Infinity;
    const crashing = interceptCalls(redis, (make, command) => {
      if (command === 'hset' && days-- <= 0) throw new Error('Connection is closed.');
      return make();
    });
    const ledger = openLedger(prefix, { now: () => now }, crashing);
    await ledger.flush();
    now = Date.parse('2027-03-02T01:00:00Z');
    days = 1;
    await ledger.flush();
    const range = { start: Date.parse('2027-03-01T22:00:00Z'), end: Date.parse('2027-03-02T00:00:00Z') };
    expect(findGaps(await readCoverage(redis, prefix, range), range, now)).toEqual([range]);
  });

  test('has a gap of one flush interval after a crash', async () => {
    const prefix = freshPrefix();
    let now = NOON;
    const crashing = openLedger(prefix, { now: () => now });
    const living = openLedger(prefix, { now: () => now });
    now += 30_000;
    await Promise.all([crashing.flush(), living.flush()]);
    now += 600_000;
    await living.flush();
    expect(await gapsFromNoon(prefix, now)).toEqual([{ start: NOON, end: NOON + 60_000 }]);
  });
});
