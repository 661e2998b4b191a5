import { describe, expect, jest, test } from '@jest/globals';
import { createLog } from '../../../src/log.ts';
import { bytesOf, jsonParts } from '../../../src/lib/long-texts.ts';
import { dayMs, dayName, dayOf } from '../../../src/lib/days.ts';
import {
  activeOrganizationsKey,
  dayKey,
  usedKeyKey,
  usedKeysKey,
} from '../../../src/deprecation/ledger/keys.ts';
import { silenceMs } from '../../../src/deprecation/ledger/coverage.ts';
import { createLedger } from '../../../src/deprecation/ledger/ledger.ts';
import { readLedger } from '../../../src/deprecation/ledger/ledger-reader.ts';
import { reportOf, reportUsage } from '../../../src/deprecation/reports/report.ts';
import { retireCheck, retireCheckLines } from '../../../src/deprecation/reports/retire-check.ts';
import type { Call } from '../../../src/deprecation/ledger/tally.ts';
import { reportCsv, reportLines } from '../../../src/deprecation/reports/report-text.ts';
import { groups, readUsageQuery } from '../../../src/deprecation/reports/usage-query.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { organizationBase, organizationsKey } from '../../../src/redis/keys.ts';
import { countingTurns } from '../../support/stopwatch.ts';
import { freshPrefix, startRedis } from '../../support/redis.ts';
import { useCleanup, useTestStore } from '../../support/use-store.ts';
import { interceptCalls, openTestStore } from '../../support/store.ts';

const log = createLog('silent');
const at = (text: string) => Date.parse(text);
const redis = await useTestStore();
const toClose = useCleanup();

/** A ledger at work since `start`, whose clock goes where the calls go. */
async function history(start: string, calls: [when: string, call: Partial<Call>][], end: string) {
  const prefix = freshPrefix();
  await redis.sadd(organizationsKey(prefix), 'acme', 'quiet');
  let now = at(start);
  const ledger = createLedger(redis, prefix, { log, now: () => now, flushMs: 1_000_000 });
  for (const [when, call] of calls) {
    now = at(when);
    ledger.record({ organizationId: 'acme', operation: 'getProfile', status: 200, ...call });
  }
  now = at(end);
  await ledger.flush();
  toClose.push(ledger.close);
  return { prefix, now };
}

async function report(prefix: string, now: number, fields: Parameters<typeof readUsageQuery>[0]) {
  const read = readUsageQuery(fields, now);
  if (read.kind === 'invalid') throw new Error(read.reasons.join());
  return reportUsage(redis, prefix, read.query, now);
}

const ios = { keyId: 'k_ios', client: 'ios-4.2', userAgent: 'App/4.2' };
const web = { keyId: 'k_web', client: 'web' };

describe('the usage report', () => {
  test('of very many callers leaves turns to the requests that this process serves', async () => {
    const callers = Array.from({ length: 5000 }, (_, i) => ({ organizationId: 'acme', keyId: `k_${i}` }));
    const query = { firstDay: 20_000, lastDay: 20_029 };
    const uses = new Map([['getProfile', { first: 0, last: 1 }]]);
    const keys = callers.map((caller) => {
      const { keyId } = caller;
      const daily = new Map(Array.from({ length: 30 }, (_, i) => [query.firstDay + i, 1]));
      const series = [{ keyId, operation: 'getProfile', status: '2xx', daily }];
      return { ...caller, client: undefined, uses, agents: new Map(), series };
    });
    const usage = { keys, query, now: 20_029 * dayMs, signal: undefined, gaps: [] };
    // Each look at the clock costs 0.1 ms, so that a turn ends after so many callers on any machine.
    let clock = 0;
    const performanceNow = jest.spyOn(performance, 'now').mockImplementation(() => (clock += 0.1));
    await countingTurns(async (turnNow) => {
      const made = await reportOf(usage, ['client']);
      expect(made.rows).toHaveLength(5000);
      expect(turnNow()).toBeGreaterThan(10);
      const before = turnNow();
      const bytes = await bytesOf(jsonParts(made));
      expect(turnNow() - before).toBeGreaterThan(10);
      expect(JSON.parse(bytes.toString())).toEqual(made);
    }).finally(() => performanceNow.mockRestore());
  });

  test('shows each client with its calls, share, first and last use and user agents', async () => {
    const { prefix, now } = await history(
      '2027-02-01T00:00:00Z',
      [
        ['2027-02-20T10:00:00Z', web],
        ['2027-03-01T10:00:00Z', ios],
        ['2027-03-01T11:00:00Z', { ...ios, operation: 'putProfile' }],
        ['2027-03-01T12:00:00Z', { ...ios, keyId: 'k_ios2', userAgent: 'App/4.3' }],
        ['2027-03-01T12:00:00Z', { keyId: undefined, status: 401 }],
      ],
      '2027-03-02T12:00:00Z',
    );
    const result = await report(prefix, now, { from: '2027-02-25' });
    expect(result).toMatchObject({
      from: '2027-02-25',
      to: '2027-03-02',
      calls: 4,
      attributed: 3,
      unattributed: 1,
      measured: 'yes',
      gaps: [],
    });
    expect(result.rows.map(({ client, calls }) => [client, calls])).toEqual([
      ['ios-4.2', 3],
      ['(unattributed)', 1],
      ['web', 0],
    ]);
    expect(result.rows[0]).toMatchObject({
      organization: 'acme',
      share: 0.75,
      daily: [0, 0, 0, 0, 3, 0],
      firstSeen: '2027-03-01T10:00:00Z',
      lastSeen: '2027-03-01T12:00:00Z',
      quietSince: '2027-03-01T12:00:00Z',
      operations: { getProfile: 2, putProfile: 1 },
      keys: 2,
      trend: { last7Days: 3, previous7Days: 0, change: null, measured: true },
      userAgents: [
        { userAgent: 'App/4.3', lastSeen: '2027-03-01T12:00:00Z' },
        { userAgent: 'App/4.2', lastSeen: '2027-03-01T11:00:00Z' },
      ],
    });
    expect(result.rows[2]?.operations).toEqual({});
    expect(result.rows[2]).toMatchObject({
      quietSince: '2027-02-20T10:00:00Z',
      quietMeasured: true,
      trend: { last7Days: 0, previous7Days: 1, change: -1 },
    });
  });

  test('leaves out times that another program has made unreadable', async () => {
    const { prefix, now } = await history(
      '2027-03-01T00:00:00Z',
      [['2027-03-01T10:00:00Z', ios]],
      '2027-03-02T00:00:00Z',
    );
    const key = usedKeyKey(organizationBase(prefix, 'acme'), ios.keyId);
    const row = async () => (await report(prefix, now, { organization: 'acme' })).rows[0];
    const seenAt = '2027-03-01T10:00:00Z';
    await redis.hset(key, 'f:getProfile', 'x', 'a:App/4.2', '9'.repeat(20), 'l:putProfile', '');
    expect(await row()).toMatchObject({ firstSeen: seenAt, lastSeen: seenAt, userAgents: [] });
    await redis.hset(key, 'l:getProfile', 'yesterday');
    expect(await row()).toMatchObject({ calls: 1, firstSeen: null, lastSeen: null });
    expect(await retireCheck(redis, prefix, { days: 1, now })).toMatchObject({
      callers: [{ operation: 'getProfile', lastSeen: expect.stringMatching(/^2027-03-01T23:59:59/) }],
    });
  });

  test('has the same total of calls for every grouping', async () => {
    const calls = Array.from({ length: 300 }, (_, i): [string, Partial<Call>] => [
      `2027-03-${String(1 + (i % 20)).padStart(2, '0')}T10:00:00Z`,
      {
        organizationId: i % 5 === 0 ? 'quiet' : 'acme',
        keyId: i % 7 === 0 ? undefined : `k_${i % 11}`,
        operation: i % 3 === 0 ? 'putProfile' : 'getProfile',
        status: i % 4 === 0 ? 404 : 200,
      },
    ]);
    const { prefix, now } = await history('2027-03-01T00:00:00Z', calls, '2027-03-21T00:00:00Z');
    for (const group of [
      ...groups,
      'client,status',
      'day,operation',
      'organization,operation,status',
      groups.join(),
    ]) {
      const whole = await report(prefix, now, { group });
      expect([group, whole.calls, whole.unattributed]).toEqual([group, 300, 43]);
      expect(whole.rows.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
      const part = await report(prefix, now, { group, organization: 'quiet' });
      expect([group, part.calls]).toEqual([group, 60]);
    }
  });

  test('shows "not measured" instead of 0 if no instance was counting', async () => {
    const { prefix, now } = await history(
      '2027-03-02T12:00:00Z',
      [['2027-03-03T10:00:00Z', ios]],
      '2027-03-04T12:00:00Z',
    );
    const days = await report(prefix, now, { from: '2027-03-01', group: 'day' });
    expect(days.rows.map(({ day, calls, measured }) => [day, calls, measured])).toEqual([
      ['2027-03-01', null, 'no'],
      ['2027-03-02', 0, 'partly'],
      ['2027-03-03', 1, 'yes'],
      ['2027-03-04', 0, 'yes'],
    ]);
    expect(days.gaps).toEqual([{ from: '2027-03-01T00:00:00Z', to: '2027-03-02T12:00:00Z', minutes: 2160 }]);
    expect([...reportCsv(days)].join('').split('\r\n').slice(0, 2)).toEqual([
      'day,calls,share,unattributed,measured',
      '2027-03-01,not measured,0,0,no',
    ]);
    expect(reportLines(days)).toEqual([
      '2027-03-01 to 2027-03-04 (UTC), all organizations: 1 call',
      '',
      'day                calls    share',
      '2027-03-01  not measured        -',
      '2027-03-02            0?    0.0 %',
      '2027-03-03             1  100.0 %',
      '2027-03-04             0    0.0 %',
      '',
      '? not measured throughout',
      '',
      'not measured: 36 hours in 1 gap (UTC)',
      '  2027-03-01 00:00 to 2027-03-02 12:00',
    ]);
  });

  test('separates the thousands of every count on a terminal, and of none in the CSV', async () => {
    const { prefix, now } = await history(
      '2027-02-01T00:00:00Z',
      [['2027-03-03T10:00:00Z', web]],
      '2027-03-04T12:00:00Z',
    );
    const found = await report(prefix, now, { from: '2027-02-01', group: 'organization' });
    const trend = { last7Days: 98_765, previous7Days: 87_654, change: 0.13, measured: true };
    const rows = found.rows.map((row) => ({ ...row, calls: 3_026_044, unattributed: 3348, trend }));
    const busy = { ...found, calls: 3_026_044, unattributed: 3348, rows };
    expect(reportLines(busy)[0]).toMatch(/: 3,026,044 calls, 3,348 of them unattributed$/);
    expect(reportLines(busy)[3]).toMatch(/^acme +3,026,044 .* 3,348 +98,765 +87,654 /);
    expect([...reportCsv(busy)][1]).toMatch(/^acme,3026044,.*,3348,98765,87654,/);
  });

  test('escapes hostile labels for spreadsheets and terminals', async () => {
    const { prefix, now } = await history(
      '2027-03-01T00:00:00Z',
      [['2027-03-01T10:00:00Z', { keyId: 'k_1', client: '=cmd|"/c calc"!A1', userAgent: '\u001b[2J@x,y' }]],
      '2027-03-01T12:00:00Z',
    );
    const result = await report(prefix, now, {});
    expect([...reportCsv(result)].join('')).toContain(`acme,"'=cmd|""/c calc""!A1",1,`);
    expect(reportLines(result).join('')).not.toMatch(/\p{Cc}/u);
  });

  test('explains a mark only where a figure has one, not where a label ends like it', async () => {
    const { prefix, now } = await history(
      '2027-03-01T00:00:00Z',
      [['2027-03-01T10:00:00Z', { keyId: 'k_1', client: 'who?', userAgent: 'what?' }]],
      '2027-03-20T12:00:00Z',
    );
    const linesSince = async (from: string) => reportLines(await report(prefix, now, { from })).join('\n');
    expect(await linesSince('2027-03-01')).not.toContain('? not measured throughout');
    expect(await linesSince('2027-02-01')).toContain('? not measured throughout');
  });

  test('shortens long labels on a terminal only, where they would push the figures away', async () => {
    const client = `${'🎮'.repeat(100)}${'x'.repeat(156)}`;
    const { prefix, now } = await history(
      '2027-03-01T00:00:00Z',
      [['2027-03-01T10:00:00Z', { keyId: 'k_1', client }]],
      '2027-03-01T12:00:00Z',
    );
    const result = await report(prefix, now, {});
    expect(reportLines(result).join('\n')).toContain(` ${'🎮'.repeat(59)}…  `);
    expect([...reportCsv(result)].join('')).toContain(client);
    expect(result.rows[0]?.client).toBe(client);
  });

  test('can be grouped by several dimensions, in JSON, CSV and the terminal', async () => {
    const { prefix, now } = await history(
      '2027-03-01T00:00:00Z',
      [
        ['2027-03-01T10:00:00Z', ios],
        ['2027-03-02T10:00:00Z', ios],
        ['2027-03-02T11:00:00Z', { ...ios, status: 404 }],
        ['2027-03-02T12:00:00Z', { ...ios, operation: 'putProfile', status: 409 }],
        ['2027-03-02T13:00:00Z', web],
      ],
      '2027-03-03T00:00:00Z',
    );
    const result = await report(prefix, now, { group: 'status, client,operation' });
    expect(result.groupBy).toBe('client,operation,status');
    expect(
      result.rows.map(({ organization, client, operation, status, calls }) =>
        [organization, client, operation, status, calls].join(' '),
      ),
    ).toEqual([
      'acme ios-4.2 getProfile 2xx 2',
      'acme ios-4.2 getProfile 4xx 1',
      'acme ios-4.2 putProfile 4xx 1',
      'acme web getProfile 2xx 1',
    ]);
    expect([...reportCsv(result)].join('').split('\r\n').slice(0, 2)).toEqual([
      'organization,client,operation,status,calls,share,unattributed,last_7_days,7_days_before,trend,measured',
      'acme,ios-4.2,getProfile,2xx,2,0.4,0,2,0,,partly',
    ]);
    expect(reportLines(result)[3]).toMatch(/^acme +ios-4.2 +getProfile +2xx +2\? +40.0 %/);

    const days = await report(prefix, now, { group: 'day,client' });
    expect(days.rows.map(({ day, client, calls }) => [day, client, calls])).toEqual([
      ['2027-03-01', 'ios-4.2', 1],
      ['2027-03-02', 'ios-4.2', 3],
      ['2027-03-02', 'web', 1],
    ]);
    const pairs = await report(prefix, now, { group: 'client,operation' });
    expect(pairs.rows.map(({ client, operation, lastSeen }) => [client, operation, lastSeen])).toEqual([
      ['ios-4.2', 'getProfile', '2027-03-02T11:00:00Z'],
      ['web', 'getProfile', '2027-03-02T13:00:00Z'],
      ['ios-4.2', 'putProfile', '2027-03-02T12:00:00Z'],
    ]);
  });

  test('reads many clients and days from Redis in few commands', async () => {
    const own = await startRedis();
    const client = await openTestStore(own.url);
    const now = at('2027-03-31T12:00:00Z');
    const today = dayOf(now);
    const base = organizationBase('pb:', 'acme');
    await client.zadd(activeOrganizationsKey('pb:'), today, 'acme');
    const keys = Array.from({ length: 500 }, (_, i) => `k_${String(i).padStart(12, '0')}`);
    const counts = keys.flatMap((key, i) =>
      ['getProfile', 'putProfile', 'banUsernames'].flatMap((operation) => [`${key}|${operation}|2xx`, i]),
    );
    for (let day = today - 89; day <= today; day += 1)
      await client.hset(dayKey(base, dayName(day)), ...counts);
    await client.zadd(usedKeysKey(base), ...keys.flatMap((key) => [now, key]));
    await Promise.all(
      keys.map((key) => client.hset(usedKeyKey(base, key), 'c', `of ${key}`, 'l:getProfile', now)),
    );
    const commands = async () =>
      Number(/total_commands_processed:(\d+)/.exec(await client.info('stats'))?.[1]);
    const before = await commands();
    const read = readUsageQuery({ from: dayName(today - 89), group: 'client,operation' }, now);
    if (read.kind === 'invalid') throw new Error(read.reasons.join());
    const result = await reportUsage(client, 'pb:', read.query, now);
    expect(result.rows).toHaveLength(1500);
    expect(result.calls).toBe(((90 * 499 * 500) / 2) * 3);
    // One for each of 500 keys, and for each of 90 days one or a few (a hash is read in parts) and its coverage.
    expect((await commands()) - before).toBeLessThan(500 + 90 * 4);
    await closeRedis(client);
    await own.stop();
  });

  test('asks one thing only of each organization that has never called', async () => {
    const prefix = freshPrefix();
    await redis.sadd(organizationsKey(prefix), ...Array.from({ length: 250 }, (_, i) => `quiet-${i}`));
    const asked: string[] = [];
    const counting = interceptCalls(redis, (make, command) => {
      asked.push(command);
      return make();
    });
    const now = at('2027-03-31T12:00:00Z');
    const range = { firstDay: dayOf(now) - 29, lastDay: dayOf(now) };
    expect(await readLedger(counting, prefix, range)).toEqual([]);
    expect(asked.filter((command) => command === 'exists')).toHaveLength(250);
    // The lists of organizations, and the days and keys of the unknown ones.
    expect(asked.filter((command) => command !== 'exists')).toHaveLength(2 + 30 + 1);
  });

  test('has a row of its own for each client whose label looks like the name of another', async () => {
    const labelled = (keyId: string, client: string) => ({ keyId, client });
    const time = '2027-03-01T10:00:00Z';
    const { prefix, now } = await history(
      '2027-03-01T00:00:00Z',
      [
        [time, { status: 401 }],
        [time, labelled('k_1', '(unattributed)')],
        [time, { status: 410, isUnchecked: true }],
        [time, labelled('k_2', '(key not checked)')],
        [time, labelled('k_3', 'k_4')],
        [time, { keyId: 'k_4' }],
      ],
      '2027-03-01T12:00:00Z',
    );
    const { rows } = await report(prefix, now, { group: 'client' });
    expect(rows.map(({ client, calls, keyIds }) => [client, calls, ...keyIds].join(' ')).toSorted()).toEqual([
      '(key not checked) 1',
      '(key not checked) 1 k_2',
      '(unattributed) 1',
      '(unattributed) 1 k_1',
      'k_4 1 k_3',
      'k_4 1 k_4',
    ]);
    expect((await report(prefix, now, { group: 'client,status' })).rows).toHaveLength(6);
    expect((await report(prefix, now, { group: 'organization' })).rows).toHaveLength(1);
    expect((await retireCheck(redis, prefix, { days: 30, now })).reasons).toContain(
      '4 clients called in the last 30 days',
    );
  });

  test('is refused if it would be made of too much, and stops when nobody waits for it', async () => {
    const { prefix, now } = await history(
      '2027-03-01T00:00:00Z',
      [['2027-03-01T10:00:00Z', ios]],
      '2027-03-01T12:00:00Z',
    );
    const range = { firstDay: dayOf(now), lastDay: dayOf(now) };
    // One count, one use and one user agent.
    expect(await readLedger(redis, prefix, range, { most: 3 })).toHaveLength(1);
    await expect(readLedger(redis, prefix, range, { most: 2 })).rejects.toThrow(
      'the report would be made of more than 2 entries of the ledger: ask for fewer days, or for one organization',
    );
    const reading = readLedger(redis, prefix, range, { signal: AbortSignal.abort() });
    await expect(reading).rejects.toThrow('aborted');
  });

  test('is refused if it would have too many rows', async () => {
    const { prefix, now } = await history('2027-03-01T00:00:00Z', [], '2027-03-31T12:00:00Z');
    const base = organizationBase(prefix, 'acme');
    await redis.zadd(activeOrganizationsKey(prefix), dayOf(now), 'acme');
    const fields = Array.from({ length: 3500 }, (_, i) => [`k_${i}|getProfile|2xx`, 1]).flat();
    for (let day = 0; day < 30; day += 1)
      await redis.hset(dayKey(base, dayName(dayOf(now) - day)), ...fields);
    await expect(report(prefix, now, { group: 'day,client' })).rejects.toThrow(
      'the report would have more than 100,000 rows: ask for fewer days, one organization, or fewer groups',
    );
    expect((await report(prefix, now, { group: 'client' })).rows).toHaveLength(3500);
  });
});

describe('the query of a report', () => {
  const now = at('2027-03-31T12:00:00Z');
  test('covers the last 30 days by client by default', () => {
    expect(readUsageQuery({}, now)).toEqual({
      kind: 'ok',
      query: { firstDay: dayOf(now) - 29, lastDay: dayOf(now), groupBy: ['client'] },
    });
  });

  test.each([
    [{ from: 'x' }, 'from must be an ISO 8601 day such as 2027-01-31, not "x"'],
    [{ from: '2027-03-02', to: '2027-03-01' }, 'from 2027-03-02 is after to 2027-03-01'],
    [{ from: '2020-01-01' }, 'at most 400 days'],
    [
      { group: 'user' },
      'group must be one or more of day, organization, client, operation, status, separated by commas, not "user"',
    ],
  ])('is refused with the reason: %j', (fields, reason) => {
    expect(readUsageQuery(fields, now)).toEqual({
      kind: 'invalid',
      reasons: [expect.stringContaining(reason)],
    });
  });
});

describe('the retire check', () => {
  test('passes if there was no attributed call and all of the time was measured', async () => {
    const { prefix, now } = await history(
      '2027-01-01T00:00:00Z',
      [
        ['2027-01-20T10:00:00Z', ios],
        ['2027-03-01T10:00:00Z', { keyId: undefined, status: 401 }],
      ],
      '2027-03-02T12:00:00Z',
    );
    const check = await retireCheck(redis, prefix, { days: 30, now });
    expect(check).toMatchObject({ retirable: true, reasons: [], callers: [], gaps: [] });
    expect(retireCheckLines(check)).toEqual([
      'the API can be retired: no attributed call in 30 days, measured throughout',
      'without a valid key:',
      '  2027-03-01T10:00:00Z  acme  1 call',
    ]);
  });

  test('fails while calls get 410 before their key is checked, and names the organizations', async () => {
    const gone = { status: 410, isUnchecked: true };
    const { prefix, now } = await history(
      '2027-01-01T00:00:00Z',
      [
        ['2027-01-10T10:00:00Z', gone],
        ['2027-03-01T10:00:00Z', gone],
        ['2027-03-01T11:00:00Z', { ...gone, operation: 'putProfile' }],
        ['2027-01-10T10:00:00Z', { ...gone, organizationId: 'quiet' }],
      ],
      '2027-03-02T12:00:00Z',
    );
    const check = await retireCheck(redis, prefix, { days: 30, now });
    expect(retireCheckLines(check)).toEqual([
      'the API cannot be retired:',
      expect.stringMatching(
        /^  2 calls in the last 30 days came with a key that was not checked \(.*--exempt-key/,
      ),
      'with a key that was not checked:',
      '  2027-03-01T11:00:00Z  acme  2 calls',
    ]);
    const quiet = await retireCheck(redis, prefix, { organizationId: 'quiet', days: 30, now });
    expect(quiet).toMatchObject({ retirable: true, unchecked: [] });
  });

  test('fails while the legacy service serves calls with an API key that is unknown here', async () => {
    const served = { keyId: undefined, status: 200 };
    const { prefix, now } = await history(
      '2027-01-01T00:00:00Z',
      [
        ['2027-03-01T10:00:00Z', served],
        ['2027-03-01T11:00:00Z', { ...served, status: 204, operation: 'putProfile' }],
        ['2027-03-01T12:00:00Z', { ...served, status: 401 }],
        ['2027-01-10T10:00:00Z', { ...served, organizationId: 'quiet' }],
        ['2027-03-01T13:00:00Z', { ...served, organizationId: 'quiet', status: 404 }],
      ],
      '2027-03-02T12:00:00Z',
    );
    const check = await retireCheck(redis, prefix, { days: 30, now });
    expect(check).toMatchObject({ retirable: false, callers: [] });
    expect(check.unattributed).toContainEqual({
      organization: 'acme',
      calls: 3,
      served: 2,
      lastSeen: '2027-03-01T12:00:00Z',
    });
    expect(retireCheckLines(check).slice(0, 3)).toEqual([
      'the API cannot be retired:',
      '  2 calls in the last 30 days, with an API key that is unknown here, were served by the legacy service',
      'without a valid key:',
    ]);
    expect(retireCheckLines(check)).toContain(
      '  2027-03-01T12:00:00Z  acme  3 calls, 2 of them served by the legacy service',
    );
    const quiet = await retireCheck(redis, prefix, { organizationId: 'quiet', days: 30, now });
    expect(quiet).toMatchObject({ retirable: true, unattributed: [{ calls: 1, served: 0 }] });
  });

  test('lists who called and when', async () => {
    const { prefix, now } = await history(
      '2027-01-01T00:00:00Z',
      [
        ['2027-02-20T10:00:00Z', web],
        ['2027-03-01T10:00:00Z', ios],
        ['2027-01-01T10:00:00Z', { organizationId: 'quiet', keyId: 'k_old', client: 'old' }],
      ],
      '2027-03-02T12:00:00Z',
    );
    const check = await retireCheck(redis, prefix, { days: 30, now });
    expect(retireCheckLines(check)).toEqual([
      'the API cannot be retired:',
      '  2 clients called in the last 30 days',
      'last calls:',
      '  2027-03-01T10:00:00Z  acme  ios-4.2 (k_ios)  getProfile',
      '  2027-02-20T10:00:00Z  acme  web (k_web)  getProfile',
    ]);
    const quiet = await retireCheck(redis, prefix, { organizationId: 'quiet', days: 30, now });
    expect(quiet.retirable).toBe(true);
  });

  test('lists a caller that another program has removed from the list of keys', async () => {
    const { prefix, now } = await history(
      '2027-01-01T00:00:00Z',
      [['2027-03-01T10:00:00Z', ios]],
      '2027-03-02T12:00:00Z',
    );
    await redis.unlink(usedKeysKey(organizationBase(prefix, 'acme')));
    expect(await retireCheck(redis, prefix, { days: 30, now })).toMatchObject({
      reasons: ['1 client called in the last 30 days'],
      callers: [{ client: 'ios-4.2', lastSeen: '2027-03-01T10:00:00Z' }],
    });
  });

  test('finds the callers of every organization where the list of those that called has been lost', async () => {
    const { prefix, now } = await history(
      '2027-01-01T00:00:00Z',
      [
        ['2027-03-01T10:00:00Z', ios],
        ['2027-03-01T11:00:00Z', { ...ios, organizationId: 'quiet' }],
      ],
      '2027-03-02T12:00:00Z',
    );
    const found = async () => {
      const { calls } = await report(prefix, now, {});
      const { callers } = await retireCheck(redis, prefix, { days: 2, now });
      return [calls, callers.map(({ organization }) => organization)];
    };
    expect(await found()).toEqual([2, ['quiet', 'acme']]);
    await redis.zrem(activeOrganizationsKey(prefix), 'acme');
    expect(await found()).toEqual([2, ['quiet', 'acme']]);
    await redis.unlink(activeOrganizationsKey(prefix));
    expect(await found()).toEqual([2, ['quiet', 'acme']]);
  });

  test('lists a caller whose record has been lost or made unreadable, by the days on which it called', async () => {
    const unchecked = { status: 410, isUnchecked: true };
    const { prefix, now } = await history(
      '2027-01-01T00:00:00Z',
      [
        ['2027-02-27T10:00:00Z', ios],
        ['2027-03-01T10:00:00Z', { ...ios, operation: 'putProfile' }],
        ['2027-03-01T10:00:00Z', web],
        ['2027-03-02T10:00:00Z', web],
        ['2027-03-02T10:00:00Z', unchecked],
      ],
      '2027-03-02T12:00:00Z',
    );
    const keyOf = (keyId: string) => usedKeyKey(organizationBase(prefix, 'acme'), keyId);
    await redis.unlink(keyOf('k_web'), keyOf('!'));
    await redis.hset(keyOf('k_ios'), 'l:putProfile', 'yesterday');
    const check = await retireCheck(redis, prefix, { days: 2, now });
    expect(check.callers.map(({ client, operation, lastSeen }) => [client, operation, lastSeen])).toEqual([
      ['k_web', 'getProfile', '2027-03-02T12:00:00Z'],
      ['ios-4.2', 'putProfile', expect.stringMatching(/^2027-03-01T23:59:59/)],
    ]);
    expect(check.unchecked).toEqual([{ organization: 'acme', calls: 1, lastSeen: '2027-03-02T12:00:00Z' }]);
    expect(check.retirable).toBe(false);
  });

  test('fails if part of the time was not measured', async () => {
    const { prefix, now } = await history('2027-02-20T00:00:00Z', [], '2027-03-02T00:00:00Z');
    const check = await retireCheck(redis, prefix, { days: 30, now });
    expect(check).toMatchObject({
      retirable: false,
      callers: [],
      reasons: ['nothing was measured for 20 days of the last 30 days'],
    });
    const before = await retireCheck(redis, prefix, { days: 30, now: at('2027-02-20T00:00:00Z') });
    expect(before.reasons).toEqual(['nothing was measured in the last 30 days']);
  });

  test('does not trust the last seconds of an instance until it writes again or is dead', async () => {
    const { prefix, now } = await history('2027-01-20T00:00:00Z', [], '2027-03-02T12:00:00Z');
    const check = await retireCheck(redis, prefix, { days: 30, now: now + silenceMs - 200 });
    expect(check).toMatchObject({
      retirable: false,
      reasons: ['nothing was measured for 1 minute of the last 30 days'],
      gaps: [{ from: '2027-03-02T12:00:00Z' }],
    });
  });

  test('waits for what an instance has counted and not written yet', async () => {
    const prefix = freshPrefix();
    await redis.sadd(organizationsKey(prefix), 'acme');
    let now = at('2027-01-20T00:00:00Z');
    const ledger = createLedger(redis, prefix, { log, now: () => now, flushMs: 1_000_000 });
    now = at('2027-03-02T12:00:00Z');
    await ledger.flush();
    now += 2000;
    ledger.record({ organizationId: 'acme', operation: 'getProfile', status: 200, ...ios });
    const checking = retireCheck(redis, prefix, { days: 30, now });
    await redis.ping();
    await ledger.flush();
    expect(await checking).toMatchObject({ gaps: [], callers: [{ client: 'ios-4.2' }] });
    await ledger.close();
  });

  test('shows the end of a gap that has just begun as the end of its minute', async () => {
    const { prefix, now } = await history('2027-01-20T00:00:00Z', [], '2027-03-02T11:59:50Z');
    const check = await retireCheck(redis, prefix, { days: 30, now: now + 20_000 });
    expect(check.gaps).toMatchObject([{ to: '2027-03-02T12:00:10Z', minutes: 2 }]);
    expect(retireCheckLines(check)).toContain('  2027-03-02 11:59 to 2027-03-02 12:01');
  });
});
