import { execFileSync } from 'node:child_process';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { PolicyView } from '../../../../src/cli/admin/deprecation/policy-view.ts';
import { createApiKey } from '../../../../src/redis/operator/api-keys.ts';
import { policyKey } from '../../../../src/deprecation/ledger/keys.ts';
import { organizationBase } from '../../../../src/redis/keys.ts';
import { runTool, type Ran } from '../../../support/tools/admin.ts';
import { startBridge, type TestBridge } from '../../../support/bridge.ts';
import { createClient } from '../../../support/requests/client.ts';
import { environmentFor, freshPrefix } from '../../../support/redis.ts';
import { startStopwatch } from '../../../support/stopwatch.ts';
import { useTestStore } from '../../../support/use-store.ts';

const store = await useTestStore();
let prefix: string;
let env: NodeJS.ProcessEnv;
beforeEach(() => {
  prefix = freshPrefix();
  env = environmentFor(prefix);
});

const admin = (command: string | string[]): Promise<Ran> => runTool(env, command);

async function show(): Promise<PolicyView & { version: number }> {
  const { code, out, err } = await admin('deprecation show --json');
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return JSON.parse(out) as PolicyView & { version: number };
}

const hour = 3_600_000;
const fromNow = (ms: number) => new Date(Math.round((Date.now() + ms) / 1000) * 1000).toISOString();

describe('deprecation show', () => {
  test('shows the facts of openapi.yaml if nothing else is set', async () => {
    expect(await show()).toMatchObject({
      version: 0,
      sunsetAt: '2027-12-31T23:59:59Z',
      afterSunset: 'serve',
      successorUrl: 'https://kv.example.com/',
      brownouts: [],
    });
    const { out } = await admin('deprecation show');
    expect(out).toContain('Nothing is set here');
    expect(out).toMatch(/^> .*  now: /m);
  });

  test('the environment overrides openapi.yaml, and the operator overrides both', async () => {
    env['SUNSET_AT'] = '2028-01-01T00:00:00Z';
    env['SUCCESSOR_URL'] = 'https://env.example/';
    await admin('deprecation set --successor https://operator.example/v2');
    expect(await show()).toMatchObject({
      sunsetAt: '2028-01-01T00:00:00Z',
      successorUrl: 'https://operator.example/v2',
      documentationUrl: '/docs/#deprecation',
    });
  });

  test('warns if what the operator has set contradicts the environment', async () => {
    await admin('deprecation set --sunset 2027-03-01T00:00:00Z --after-sunset gone');
    expect(await show()).toMatchObject({ warnings: [] });
    env['DEPRECATED_AT'] = '2027-06-01T00:00:00Z';
    env['SUNSET_AT'] = '2028-01-01T00:00:00Z';
    const warning = 'the sunset (2027-03-01T00:00:00Z) is before the deprecation (2027-06-01T00:00:00Z)';
    expect(await show()).toMatchObject({ warnings: [warning] });
    expect((await admin('deprecation show')).out).toContain(`warning        ${warning}\n`);
  });
});

describe('deprecation set', () => {
  test('changes the given settings, and adds brownouts and exemptions to the existing ones', async () => {
    const set = await admin(
      'deprecation set --deprecated-at 2026-10-01 --sunset 2029-06-30T12:00:00+02:00 --after-sunset gone --documentation /docs/ --brownout 2029-01-01T00:00:00Z/PT30M --brownout 2029-02-01T00:00:00Z/P1D --json',
    );
    expect(set).toMatchObject({ code: 0, err: '' });
    const more = await admin('deprecation set --brownout 2029-01-15T00:00:00Z/2029-01-15T01:00:00Z');
    expect(more).toMatchObject({ code: 0, err: '' });
    expect(more.out).toContain('brownout until 2029-01-15T01:00:00Z');
    const view = await show();
    expect(view).toMatchObject({
      version: 2,
      deprecatedAt: '2026-10-01T00:00:00Z',
      sunsetAt: '2029-06-30T10:00:00Z',
      afterSunset: 'gone',
      documentationUrl: '/docs/',
    });
    expect(view.brownouts.map(({ start, end }) => `${start}/${end}`)).toEqual([
      '2029-01-01T00:00:00Z/2029-01-01T00:30:00Z',
      '2029-01-15T00:00:00Z/2029-01-15T01:00:00Z',
      '2029-02-01T00:00:00Z/2029-02-02T00:00:00Z',
    ]);
  });

  test('an --until applies to all exemptions before it that have no end yet', async () => {
    await admin('org set acme');
    await admin('org set globex');
    const { keyId } = await createApiKey(store, organizationBase(prefix, 'acme'), { role: 'admin' });
    const set = await admin(
      `deprecation set --exempt-org acme --exempt-key ${keyId} --until 2029-01-01 --exempt-org globex --until 2029-02-01`,
    );
    expect(set).toMatchObject({ code: 0, err: '' });
    const { exemptOrganizations, exemptKeys } = await show();
    expect([...exemptOrganizations, ...exemptKeys]).toEqual([
      { organizationId: 'acme', until: '2029-01-01T00:00:00Z', live: true },
      { organizationId: 'globex', until: '2029-02-01T00:00:00Z', live: true },
      { keyId, until: '2029-01-01T00:00:00Z', live: true },
    ]);
  });

  test('accepts an exemption of an unknown name, with a note', async () => {
    const set = await admin('deprecation set --exempt-org soon --exempt-key k_soon --until 2029-01-01');
    expect(set.code).toBe(0);
    expect(set.err).toBe(
      'note: there is no organization "soon" yet: check the name\nnote: there is no key k_soon yet: check the name\n',
    );
  });

  test.each([
    ['--sunset 2026-01-01', 'is before the deprecation'],
    ['--brownout 2020-01-01T00:00:00Z/PT1H', 'is wholly in the past'],
    ['--brownout 2029-01-01/P2D --brownout 2029-01-02/PT1H', 'overlap'],
    ['--exempt-org acme --until 2020-01-01', 'ends in the past'],
  ])('refuses an invalid policy with the reason and changes nothing: %s', async (flags, reason) => {
    const refused = await admin(`deprecation set --successor https://lost.example/ ${flags}`);
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toMatch(/^error: nothing was changed: [^\n]+\n$/);
    expect(refused.err).toContain(reason);
    expect(await show()).toMatchObject({ version: 0, successorUrl: 'https://kv.example.com/' });
    const { code, out } = await admin(`deprecation set ${flags} --json`);
    expect([code, JSON.parse(out)]).toEqual([
      1,
      { changed: false, reasons: [expect.stringContaining(reason)] },
    ]);
  });

  test.each([
    ['', 'nothing to set'],
    ['--sunset soon', 'not an ISO 8601 time'],
    ['--deprecated-at 2027-02-30', 'not an ISO 8601 time'],
    ['--sunset 2027-01-01T12:00:00', 'with a zone'],
    ['--successor ftp://kv.example/', 'not an http(s) URL'],
    ['--documentation javascript:alert(1)', 'not an http(s) URL'],
    ['--after-sunset maybe', 'neither serve nor gone'],
    ['--brownout 2029-01-01T00:00:00Z', 'not an interval'],
    ['--brownout 2029-01-01T00:00:00Z/1h', '"1h" is neither an ISO 8601 duration, like PT30M'],
    ['--exempt-org acme', 'has no end: add --until'],
    ['--exempt-org a --until 2029-01-01 --exempt-key k_1', 'the exemption of key k_1 has no end'],
    ['--until 2029-01-01', 'It must follow'],
    ['--brown-out 2029-01-01/PT1H', "unknown option '--brown-out'"],
  ])('exits 2 on options it cannot parse, and changes nothing: %j', async (flags, reason) => {
    const wrong = await admin(`deprecation set ${flags}`.trim());
    expect(wrong).toMatchObject({ code: 2, out: '' });
    expect(wrong.err).toMatch(/^error: [^\n]+\n$/);
    expect(wrong.err).toContain(reason);
    expect(await store.exists(policyKey(prefix))).toBe(0);
  });
});

describe('deprecation clear', () => {
  beforeEach(async () => {
    const { code } = await admin(
      'deprecation set --sunset 2029-06-30 --after-sunset gone --brownout 2029-01-01T00:00:00Z/PT30M --brownout 2029-02-01T00:00:00Z/PT30M --exempt-org acme --exempt-key k_1 --until 2029-01-01',
    );
    expect(code).toBe(0);
  });

  test('removes the given settings and keeps the others', async () => {
    const cleared = await admin(
      'deprecation clear --sunset --brownout 2029-01-01T00:00:00Z --exempt-key k_1 --json',
    );
    expect(cleared).toMatchObject({ code: 0, err: '' });
    expect(await show()).toMatchObject({
      sunsetAt: '2027-12-31T23:59:59Z',
      afterSunset: 'gone',
      brownouts: [{ start: '2029-02-01T00:00:00Z' }],
      exemptOrganizations: [{ organizationId: 'acme' }],
      exemptKeys: [],
    });
  });

  test('takes a brownout as it was set, too', async () => {
    const { code, err } = await admin('deprecation clear --brownout 2029-01-01T00:00:00Z/PT31M');
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(/brownout .*T00:31:00Z is not set/),
    });
    expect((await admin('deprecation clear --brownout 2029-01-01T00:00:00Z/PT30M')).code).toBe(0);
    expect((await show()).brownouts).toMatchObject([{ start: '2029-02-01T00:00:00Z' }]);
  });

  test('without options removes all settings, and prints how to undo that', async () => {
    const before = await show();
    const cleared = await admin('deprecation clear');
    expect(cleared).toMatchObject({ code: 0, err: '' });
    expect(await show()).toMatchObject({ afterSunset: 'serve', brownouts: [], exemptOrganizations: [] });
    const again = /To undo: profile-bridge admin (.*)/.exec(cleared.out)?.[1] ?? '';
    expect((await admin(again)).code).toBe(0);
    expect(await show()).toEqual({ ...before, version: before.version + 2 });
  });

  test('prints how to undo even the exemption of an organization whose id is not printable', async () => {
    const strange = "a\u202e\u200b b'$(c)%s\\";
    await admin('deprecation clear');
    await admin(['deprecation', 'set', '--exempt-org', strange, '--until', '2029-01-01']);
    const { out } = await admin('deprecation clear');
    expect(out).not.toMatch(/\p{Cf}/u);
    const again = /To undo: profile-bridge admin (.*)/.exec(out)?.[1] ?? '';
    const read = execFileSync('sh', ['-c', `printf '%s\\0' ${again}`]).toString();
    expect((await admin(read.split('\0').slice(0, -1))).code).toBe(0);
    expect((await show()).exemptOrganizations).toMatchObject([{ organizationId: strange }]);
  });

  test('prints how to undo it even of what another operator sets at the same time', async () => {
    await admin('deprecation clear');
    const days = Array.from({ length: 9 }, (_, i) => `2029-01-0${i + 1}T00:00:00Z`);
    const runs = days.map(async (day, i) => {
      const set = admin(`deprecation set --brownout ${day}/PT30M`);
      const cleared = i % 3 === 0 ? await admin('deprecation clear') : undefined;
      expect((await set).code).toBe(0);
      return cleared?.out ?? '';
    });
    const undo = (await Promise.all(runs)).flatMap((out) => /To undo: .*/.exec(out) ?? []).join();
    const left = (await show()).brownouts.map(({ start }) => start);
    for (const day of days) expect([...left, ...(undo.includes(day) ? [day] : [])]).toContain(day);
  });

  test('removes a stored policy that is invalid, which other commands report and leave as it is', async () => {
    await store.set(policyKey(prefix), '{"layer":{"brownout":1}}');
    for (const command of ['show', 'set --sunset 2028-01-01', 'clear --sunset']) {
      const { code, err } = await admin(`deprecation ${command}`);
      expect([command, code]).toEqual([command, 1]);
      expect(err).toContain('the stored deprecation policy is invalid');
    }
    expect((await admin('deprecation clear')).code).toBe(0);
    expect(await show()).toMatchObject({ sunsetAt: '2027-12-31T23:59:59Z', version: 1 });
  });

  test('refuses to remove an exemption that is not set', async () => {
    const refused = await admin('deprecation clear --sunset --exempt-org nobody');
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toContain('"nobody" is not set');
    expect(await show()).toMatchObject({ sunsetAt: '2029-06-30T00:00:00Z' });
  });

  test('exits 2 on a brownout it cannot parse, and changes nothing', async () => {
    expect(await admin('deprecation clear --brownout tomorrow')).toMatchObject({ code: 2, out: '' });
    expect((await show()).brownouts).toHaveLength(2);
  });
});

describe('two running bridges', () => {
  const bridges: TestBridge[] = [];
  beforeAll(async () => {
    bridges.push(await startBridge());
    bridges.push(await startBridge({ keyPrefix: bridges[0]?.config.keyPrefix ?? '' }));
  });
  beforeEach(() => {
    env = environmentFor(bridges[0]?.config.keyPrefix ?? '');
  });
  afterAll(() => Promise.all(bridges.map((bridge) => bridge.close())));

  let elapsed: () => number;
  const change = async (command: string): Promise<void> => {
    await admin(command);
    elapsed = startStopwatch();
  };
  afterEach(() => {
    expect(elapsed()).toBeLessThan(5000);
  });

  /** Requests until every bridge answers as wanted. */
  const untilAll = async (isWanted: (status: number, headers: Record<string, string>) => boolean) => {
    for (const bridge of bridges) {
      for (;;) {
        const { status, headers } = await createClient(bridge.url).request('GET', '/api/profile/');
        if (isWanted(status, headers)) break;
      }
    }
  };

  test('announce a new sunset within 5 seconds', async () => {
    await change('deprecation set --sunset 2030-01-01T00:00:00Z --successor https://new.example/');
    await untilAll(
      (_status, { sunset, link }) =>
        sunset === 'Tue, 01 Jan 2030 00:00:00 GMT' &&
        link?.includes('<https://new.example/>; rel="successor-version"') === true,
    );
  });

  test('begin a brownout within 5 seconds', async () => {
    const end = fromNow(hour);
    await change(`deprecation set --brownout ${fromNow(-1000)}/${end}`);
    await untilAll((status, { 'retry-after': seconds }) => status === 410 && Number(seconds) <= 3600);
  });

  test('serve an organization within 5 seconds of its exemption from a brownout', async () => {
    const organization = await bridges[0]?.newOrganization();
    const id = organization?.id ?? '';
    const made = await organization?.newKey({ role: 'player', userId: 'u1' });
    await change(`deprecation set --exempt-org ${id} --until ${fromNow(hour)}`);
    for (const { url } of bridges) {
      const client = createClient(url, { organization: id, ...(made && { apiKey: made.apiKey }) });
      while ((await client.request('GET', '/api/profile/')).status !== 404);
      expect((await createClient(url).request('GET', '/api/profile/')).status).toBe(410);
    }
  });

  test('end a brownout within 5 seconds of its removal', async () => {
    await change('deprecation clear');
    await untilAll((status, { sunset }) => status === 401 && sunset === 'Fri, 31 Dec 2027 23:59:59 GMT');
  });
});
