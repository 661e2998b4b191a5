import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { dayMs, dayName, dayOf } from '../../src/lib/days.ts';
import { dayKey, unknownOrganizationBase, usedKeysKey } from '../../src/deprecation/ledger/keys.ts';
import { createLog } from '../../src/log.ts';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import { startAdminPort, TOKEN, type TestAdminPort } from '../support/admin-port.ts';
import { freshPrefix, startRedis } from '../support/redis.ts';
import { writeHistory } from './usage-history.ts';
import { useCleanup, useTestStore } from '../support/use-store.ts';
import { openTestStore } from '../support/store.ts';

const now = Date.UTC(2027, 2, 31, 12);
const store = await useTestStore();
let port: TestAdminPort;

beforeAll(async () => {
  const keyPrefix = freshPrefix();
  const ios = { organizationId: 'acme', keyId: 'k_ios', client: 'ios-4.2', operation: 'getProfile' };
  await writeHistory(
    store,
    keyPrefix,
    [[now - 40 * dayMs, now]],
    [
      { ...ios, at: now - 35 * dayMs, times: 5 },
      { ...ios, at: now - 3 * dayMs, times: 7 },
      { ...ios, at: now - 1000, operation: 'putProfile', times: 2 },
      { organizationId: 'quiet', keyId: 'k_web', client: '=web', at: now - 2000 },
      { organizationId: 'acme', status: 401, at: now - 3000, times: 4 },
    ],
  );
  port = await startAdminPort({ store, keyPrefix, now: () => now });
});
afterAll(async () => {
  await port.close();
});

const closings = useCleanup();

test('/usage reports the last 30 days by client by default', async () => {
  const { status, headers, body } = await port.ask('/usage');
  expect(status).toBe(200);
  expect(headers['content-type']).toBe('application/json; charset=utf-8');
  expect(body).toMatchObject({
    from: '2027-03-02',
    to: '2027-03-31',
    organization: null,
    groupBy: 'client',
    calls: 14,
    attributed: 10,
    unattributed: 4,
    measured: 'yes',
    gaps: [],
    rows: [
      { organization: 'acme', client: 'ios-4.2', calls: 9 },
      { organization: 'acme', client: '(unattributed)', calls: 4 },
      { organization: 'quiet', client: '=web', calls: 1 },
    ],
  });
});

test.each([
  [
    'group=status,operation',
    {
      groupBy: 'operation,status',
      calls: 14,
      rows: [
        { operation: 'getProfile', status: '2xx', calls: 8 },
        { operation: 'getProfile', status: '4xx', calls: 4 },
        { operation: 'putProfile', status: '2xx', calls: 2 },
      ],
    },
  ],
  ['organization=quiet', { organization: 'quiet', calls: 1 }],
  ['organization=nobody', { calls: 0, rows: [] }],
  [`from=${dayName(dayOf(now) - 39)}&organization=acme`, { calls: 18 }],
  [
    'from=2027-03-28&to=2027-03-28&group=day',
    { calls: 7, rows: [{ day: '2027-03-28', calls: 7, measured: 'yes' }] },
  ],
  ['to=2099-01-01&from=2027-03-31', { to: '2027-03-31', calls: 7 }],
])('/usage takes its parameters from the query: %s', async (query, expected) => {
  expect((await port.ask(`/usage?${query}`)).body).toMatchObject(expected);
});

test('/usage as CSV contains no formulas', async () => {
  const { headers, text } = await port.ask('/usage?format=csv');
  expect(headers['content-type']).toBe('text/csv; charset=utf-8');
  expect(headers['content-disposition']).toBe(
    'attachment; filename=usage-by-client-2027-03-02-to-2027-03-31.csv',
  );
  expect(text).toMatch(/^organization,client,calls,share,/);
  expect(text).toContain("quiet,'=web,1,");
});

test('/usage answers an invalid query with all its mistakes and an example', async () => {
  const { status, headers, body } = await port.ask(
    '/usage?from=yesterday&group=user&format=xml&grop=day&organization=a&organization=b',
  );
  expect(status).toBe(400);
  expect(headers['content-type']).toBe('application/problem+json; charset=utf-8');
  expect(body).toMatchObject({
    status: 400,
    title: expect.any(String),
    remedy: expect.stringContaining('/usage?from='),
  });
  for (const word of ['yesterday', '"user"', '"xml"', '"grop"', 'organization is given more than once']) {
    expect(body['detail']).toContain(word);
  }
  expect((await port.ask('/usage?from=1970-01-01')).body['detail']).toContain('at most 400 days');
});

test('/usage and the page go by the clock of Redis, where that of this machine differs', async () => {
  const trueNow = Date.now();
  const clock = jest.spyOn(Date, 'now').mockReturnValue(trueNow + 3 * dayMs);
  try {
    const alone = await startAdminPort({ store, keyPrefix: freshPrefix() });
    closings.push(alone.close);
    const { body } = await alone.ask('/usage');
    expect(Date.parse(String(body['generatedAt'])) - trueNow).toBeLessThan(dayMs);
    expect(body['to']).toBe(String(body['generatedAt']).slice(0, 10));
    const [, to = ''] = /group=day&amp;from=[\d-]+&amp;to=([\d-]+)/.exec((await alone.ask('/')).text) ?? [];
    expect(Date.parse(to) - trueNow).toBeLessThan(dayMs);
  } finally {
    clock.mockRestore();
  }
});

test('/usage ignores counts that are not numbers, which another program has written', async () => {
  const keyPrefix = freshPrefix();
  const day = dayKey(unknownOrganizationBase(keyPrefix), dayName(dayOf(now)));
  await store.hset(day, 'k_1|getProfile|2xx', 'x', 'k_2|getProfile|2xx', 2, 'k_3|getProfile|2xx', '-3');
  const alone = await startAdminPort({ store, keyPrefix, now: () => now });
  closings.push(alone.close);
  expect((await alone.ask('/usage')).body).toMatchObject({
    calls: 2,
    rows: [{ client: 'k_2', calls: 2, share: 1 }],
  });
});

test('what cannot be answered is a problem with a remedy', async () => {
  const keyPrefix = freshPrefix();
  const log = createLog('silent');
  const logged = jest.spyOn(log, 'error');
  const alone = await startAdminPort({ store, keyPrefix, token: TOKEN, now: () => now, log });
  closings.push(alone.close);
  const headers = { authorization: `Bearer ${TOKEN}` };
  expect((await alone.ask('/assets/%E0%A4')).body).toMatchObject({
    status: 400,
    title: 'The request cannot be read',
  });

  const base = unknownOrganizationBase(keyPrefix);
  const fields = Array.from({ length: 3500 }, (_, i) => [`k_${i}|getProfile|2xx`, 1]).flat();
  for (let ago = 0; ago < 30; ago += 1) await store.hset(dayKey(base, dayName(dayOf(now) - ago)), ...fields);
  expect((await alone.ask('/usage?group=day,client', { headers })).body).toMatchObject({
    status: 400,
    title: 'The report is too large',
    remedy: 'Narrow the query, or read it in parts.',
  });
  expect((await alone.ask('/?group=day,client', { headers })).text).toContain('The report is too large');

  await store.set(usedKeysKey(base), 'what is no sorted set');
  expect((await alone.ask('/usage', { headers })).body).toMatchObject({
    status: 500,
    title: 'Internal error',
  });
  const page = await alone.ask('/?days=2', { headers });
  expect([page.status, page.headers['content-type']]).toEqual([500, 'text/html; charset=utf-8']);
  expect(page.text).toMatch(/role="alert">\s*<h2>Internal error<\/h2>/);
  const remedy = `a request to the admin port failed: remove the key ${usedKeysKey(base)}, which has the wrong type`;
  expect(logged.mock.calls.map(([message]) => message)).toEqual([remedy, remedy]);
});

test('without Redis, /usage answers 503 with the remedy and /metrics still works', async () => {
  const redis = await startRedis();
  const lost = await openTestStore(redis.url);
  closings.push(() => closeRedis(lost));
  const alone = await startAdminPort({ store: lost, keyPrefix: freshPrefix() });
  closings.push(alone.close);
  await redis.stop();
  const answer = await alone.ask('/usage');
  expect([answer.status, answer.headers['retry-after']]).toEqual([503, '5']);
  expect(answer.body['remedy']).toContain('REDIS_URL');
  expect((await alone.ask('/metrics')).text).toContain('profile_bridge_redis_up 0');
});
