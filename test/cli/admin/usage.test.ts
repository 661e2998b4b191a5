import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { parse } from 'csv-parse/sync';
import { writeCoverage } from '../../../src/deprecation/ledger/coverage.ts';
import { formatInstant } from '../../../src/lib/iso8601.ts';
import { dayMs, hourMs, minuteMs } from '../../../src/lib/days.ts';
import { createLedger } from '../../../src/deprecation/ledger/ledger.ts';
import type { UsageReport } from '../../../src/deprecation/reports/report.ts';
import type { RetireCheck } from '../../../src/deprecation/reports/retire-check.ts';
import { createLog } from '../../../src/log.ts';
import { organizationBase } from '../../../src/redis/keys.ts';
import { runTool, type Ran } from '../../support/tools/admin.ts';
import { startBridge, type TestBridge, type TestOrganization } from '../../support/bridge.ts';
import { createClient } from '../../support/requests/client.ts';
import { environmentFor, freshPrefix } from '../../support/redis.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();
let prefix: string;
let env: NodeJS.ProcessEnv;
beforeEach(() => use(freshPrefix()));

function use(keyPrefix: string): void {
  prefix = keyPrefix;
  env = environmentFor(prefix);
}

const admin = (command: string): Promise<Ran> => runTool(env, command);

async function usage(flags: string): Promise<UsageReport> {
  const { code, out, err } = await admin(`usage ${flags} --json`.replace('  ', ' '));
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return JSON.parse(out) as UsageReport;
}

const tally = <T>(items: readonly T[], name: (item: T) => string): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const item of items) counts[name(item)] = (counts[name(item)] ?? 0) + 1;
  return counts;
};

const callsBy = ({ rows }: UsageReport, name: (row: UsageReport['rows'][number]) => string | undefined) =>
  Object.fromEntries(rows.filter(({ calls }) => calls !== 0).map((row) => [name(row), row.calls]));

interface Made {
  organization: string;
  client: string;
  operation: string;
  status: number;
}

describe('every call is reported exactly once', () => {
  const operations = [
    ['getProfile', 'GET', '/api/profile/', undefined],
    ['getProfile', 'HEAD', '/api/profile', undefined],
    ['putProfile', 'PUT', '/api/profile/', {}],
    ['putProfile', 'PUT', '/api/profile/', { username: '' }],
    ['banUsernames', 'POST', '/api/profile/username/deny/', {}],
    ['removeDeniedUsernames', 'DELETE', '/api/profile/username/deny/', []],
    ['overwriteDenylist', 'PUT', '/api/profile/username/denylist/', []],
  ] as const;
  const made: Made[] = [];
  const running = new Set<TestBridge>();
  let first: TestBridge;
  let clients: { organization: TestOrganization; client: string; apiKey: string }[];

  /** Calls this bridge in many ways at once, with valid keys of several clients and with invalid ones. */
  const callAll = async ({ url }: TestBridge, rounds: number): Promise<void> => {
    const calls = Array.from({ length: rounds }, (_, i) => clients[i % clients.length]).flatMap((caller) =>
      operations.map(async ([operation, method, path, json]) => {
        if (caller === undefined) return;
        const { organization, client, apiKey } = caller;
        const options = json === undefined ? {} : { json };
        const api = createClient(url, { organization: organization.id, apiKey });
        const { status } = await api.request(method, path, options);
        made.push({
          organization: organization.id,
          client: status === 401 ? '(unattributed)' : client,
          // Both read the profile.
          operation,
          status,
        });
      }),
    );
    await Promise.all(calls);
    // What is no call of the contract is none.
    for (const path of ['/livez', '/docs/', '/openapi.yaml']) await createClient(url).request('GET', path);
  };

  const start = async (...given: Parameters<typeof startBridge>): Promise<TestBridge> => {
    const bridge = await startBridge(...given);
    running.add(bridge);
    return bridge;
  };
  const stop = async (bridge: TestBridge): Promise<void> => {
    if (running.delete(bridge)) await bridge.close();
  };
  afterAll(() => Promise.all(Array.from(running, stop)));

  beforeAll(async () => {
    first = await start();
    const { keyPrefix } = first.config;
    const second = await start({ keyPrefix });
    const [acme, globex] = [await first.newOrganization(), await first.newOrganization()];
    const key = async (organization: TestOrganization, client: string, role: 'player' | 'admin') => ({
      organization,
      client,
      apiKey: (await organization.newKey({ role, client, userId: `u-${client}` })).apiKey,
    });
    clients = [
      await key(acme, 'ios-4.2', 'player'),
      await key(acme, 'ios-4.2', 'player'),
      await key(acme, 'backoffice', 'admin'),
      await key(globex, 'web', 'player'),
      { organization: globex, client: '', apiKey: 'a guess' },
    ];
    await Promise.all([callAll(first, 15), callAll(second, 10)]);
    await stop(first);
    const again = await start({ keyPrefix });
    await Promise.all([callAll(again, 5), callAll(second, 5)]);
    await Promise.all([again, second].map(stop));
  });
  beforeEach(() => use(first.config.keyPrefix));

  test('by client, operation, status and organization, over two bridges and a restart', async () => {
    expect(made).toHaveLength(35 * operations.length);
    const byClient = await usage('');
    expect(byClient.calls).toBe(made.length);
    expect(callsBy(byClient, (row) => `${row.organization} ${row.client}`)).toEqual(
      tally(made, ({ organization, client }) => `${organization} ${client}`),
    );
    expect(callsBy(await usage('--group operation'), ({ operation }) => operation)).toEqual(
      tally(made, ({ operation }) => operation),
    );
    expect(callsBy(await usage('--group status'), ({ status }) => status)).toEqual(
      tally(made, ({ status }) => `${Math.floor(status / 100)}xx`),
    );
    expect(callsBy(await usage('--group organization'), ({ organization }) => organization ?? '')).toEqual(
      tally(made, ({ organization }) => organization),
    );
    expect((await usage('--group day')).calls).toBe(made.length);
    const detailed = await usage('--group client,operation,status');
    expect(callsBy(detailed, (row) => `${row.client} ${row.operation} ${row.status}`)).toEqual(
      tally(made, ({ client, operation, status }) => `${client} ${operation} ${Math.floor(status / 100)}xx`),
    );
  });

  test('for a single organization', async () => {
    const id = clients[0]?.organization.id ?? '';
    const report = await usage(`--org ${id}`);
    expect(callsBy(report, ({ client }) => client)).toEqual(
      tally(
        made.filter(({ organization }) => organization === id),
        ({ client }) => client,
      ),
    );
  });

  test('in the table and in CSV as well', async () => {
    const table = await admin('usage --group operation');
    expect(table).toMatchObject({ code: 0, err: '' });
    expect(table.out).toContain(` ${made.length} calls`);
    const csv = await admin('usage --group operation --csv');
    const rows = parse<Record<string, string>>(csv.out, { columns: true });
    expect(Object.fromEntries(rows.map(({ operation, calls }) => [operation, Number(calls)]))).toEqual(
      tally(made, ({ operation }) => operation),
    );
  });

  test('by retire-check, which lists all callers and nobody else', async () => {
    const { code, out } = await admin('usage retire-check --days 1 --json');
    const { callers } = JSON.parse(out) as RetireCheck;
    expect(code).toBe(1);
    expect(
      new Set(callers.map((caller) => `${caller.organization} ${caller.client} ${caller.operation}`)),
    ).toEqual(
      new Set(
        made
          .filter(({ status }) => status !== 401)
          .map(({ organization, client, operation }) => `${organization} ${client} ${operation}`),
      ),
    );
  });
});

describe('usage', () => {
  test('shows since when clients are quiet, and what was not measured', async () => {
    await admin('org set acme');
    const start = Date.now() - 20 * dayMs;
    let now = start;
    const log = createLog('silent');
    const ledger = createLedger(store, prefix, { log, now: () => now, flushMs: 1_000_000 });
    const call = { organizationId: 'acme', operation: 'getProfile', status: 200 };
    ledger.record({ ...call, keyId: 'k_1', client: 'ios-4.2', userAgent: 'App/4.2' });
    // Measured until later than the report, however late that is.
    now = Date.now() + hourMs;
    await ledger.close();

    const { code, out } = await admin('usage');
    expect(code).toBe(0);
    const day = new Date(start).toISOString().slice(0, 10);
    const [, , titles, row] = out.split('\n');
    expect(titles).toMatch(
      /^organization +client +calls +share .* first seen +last seen +quiet since +user agents$/,
    );
    expect(row).toMatch(
      new RegExp(`^acme +ios-4.2 +1\\? +100.0 % .* ${day} \\d\\d:\\d\\d +${day} +App/4.2$`),
    );
    expect(out).toContain('not measured: ');
    expect((await admin('usage --group day')).out).toMatch(/^\d{4}-\d\d-\d\d +not measured/m);
  });

  test('shows "not measured" instead of 0 if nothing was measured', async () => {
    const { code, out } = await admin('usage');
    expect(code).toBe(0);
    expect(out).toMatch(/all organizations: not measured\n\nno calls were measured\n/);
  });

  test.each([
    ['--from tomorrow', 'must be an ISO 8601 day such as 2027-01-31'],
    ['--from=', 'must be an ISO 8601 day'],
    ['--from 2030-01-02', 'is after today'],
    ['--from 2020-01-01', 'reaches back at most'],
    ['--group user', 'group must be one or more of day, organization, client, operation, status'],
    ['--csv --json', 'cannot be used with'],
    ['retire-check --days 0', '1 to 400'],
    ['retire-check --days soon', 'whole number'],
    ['--csv retire-check', "retire-check has no option '--csv'"],
    ['--from 2026-01-01 retire-check', "retire-check has no option '--from'"],
    ['retired', "unknown command 'retired'"],
    ['retire-check now', 'too many arguments'],
  ])('exits 2 on options it cannot parse: %s', async (flags, reason) => {
    const wrong = await admin(`usage ${flags}`);
    expect(wrong).toMatchObject({ code: 2, out: '' });
    expect(wrong.err).toMatch(/^error: [^\n]+\n$/);
    expect(wrong.err).toContain(reason);
  });

  test.each(['usage', 'usage --csv', 'usage retire-check --json'])(
    '%s ends at once if it is interrupted',
    async (command) => {
      const ran = await runTool(env, command, AbortSignal.abort());
      expect(ran).toEqual({ code: 130, out: '', err: 'error: interrupted\n' });
    },
  );

  test('names a key of the ledger that has the wrong type', async () => {
    await admin('org set acme');
    const key = `${organizationBase(prefix, 'acme')}use:${formatInstant(Date.now() - dayMs).slice(0, 10)}`;
    await store.set(key, 'x');
    const { code, out, err } = await admin('usage --org acme');
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toContain(`error: remove the key ${key}, which has the wrong type`);
  });
});

describe('usage retire-check', () => {
  const day = (ago: number) => Date.now() - ago * dayMs;
  /** Until when an instance has been measuring that does not stop during a test, however slow that is. */
  const tomorrow = day(-1);
  const measured = (start: number, until: number, closed: boolean) =>
    writeCoverage(store, prefix, { instance: 'a', start, since: start, until, closed });
  const called = async (organizationId: string, ago: number) => {
    const log = createLog('silent');
    const ledger = createLedger(store, prefix, { log, now: () => day(ago), flushMs: 1_000_000 });
    ledger.record({ organizationId, keyId: 'k_1', client: 'ios', operation: 'getProfile', status: 200 });
    await ledger.close();
  };
  beforeEach(async () => {
    await admin('org set acme');
    await admin('org set globex');
  });

  test('exits 0 if nobody called and all of the time was measured', async () => {
    await called('acme', 35);
    await measured(day(40), tomorrow, false);
    expect(await admin('usage retire-check')).toEqual({
      code: 0,
      out: 'the API can be retired: no attributed call in 30 days, measured throughout\n',
      err: '',
    });
    expect((await admin('usage retire-check --days 36')).code).toBe(1);
  });

  test('exits 1 if somebody called, and prints who and when', async () => {
    await called('acme', 10);
    await measured(day(40), tomorrow, false);
    const { code, out, err } = await admin('usage retire-check');
    expect(code).toBe(1);
    expect(out).toContain(`${new Date(day(10)).toISOString().slice(0, 10)}T`);
    expect(out).toContain('acme  ios (k_1)  getProfile');
    expect(err).toBe('error: cannot be retired yet: 1 client called in the last 30 days\n');
    expect((await admin('usage retire-check --org globex')).code).toBe(0);
    expect((await admin('usage retire-check --org acme')).code).toBe(1);
    expect((await admin('usage --org globex retire-check')).code).toBe(0);
    expect((await admin('usage --org globex retire-check --org acme')).code).toBe(1);
    const given = await admin('usage --json --org acme retire-check');
    expect(JSON.parse(given.out)).toMatchObject({ organization: 'acme', retirable: false });
    expect((await admin('usage retire-check --days 9')).code).toBe(0);
  });

  test('exits 1 if part of the time was not measured, and prints when', async () => {
    // Between two minutes, of which both are measured.
    const stopped = Math.floor(day(3) / minuteMs) * minuteMs + 30_000;
    const resumed = stopped + dayMs;
    await measured(day(40), stopped, true);
    await writeCoverage(store, prefix, {
      instance: 'b',
      start: resumed,
      since: resumed,
      until: tomorrow,
      closed: false,
    });
    const { code, out } = await admin('usage retire-check --json');
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      retirable: false,
      callers: [],
      gaps: [{ from: formatInstant(stopped + 30_000), to: formatInstant(resumed - 30_000), minutes: 1439 }],
    });
    expect((await admin('usage retire-check')).out).toContain('not measured: ');
  });

  test('goes by the clock of Redis, as instances do, where that of its machine differs', async () => {
    const trueNow = Date.now();
    // An instance that has just written, however slow this test is.
    await measured(trueNow - 40 * dayMs, trueNow + hourMs, false);
    const clock = jest.spyOn(Date, 'now').mockReturnValue(trueNow + 3 * dayMs);
    try {
      const { out } = await admin('usage retire-check --json');
      expect(JSON.parse(out)).toMatchObject({ retirable: true, gaps: [] });
      const { generatedAt, to, measured: isMeasured } = await usage('--group day');
      expect(isMeasured).toBe('yes');
      expect(Date.parse(generatedAt) - trueNow).toBeLessThan(hourMs);
      expect(to).toBe(generatedAt.slice(0, 10));
    } finally {
      clock.mockRestore();
    }
  });
});
