import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { dayMs } from '../../../src/lib/days.ts';
import { sparkline } from '../../../src/admin-port/dashboard/components/sparkline.ts';
import { percent, visible } from '../../../src/admin-port/dashboard/components/text.ts';
import { html } from '../../../src/lib/html.ts';
import { usedKeyKey } from '../../../src/deprecation/ledger/keys.ts';
import { organizationBase } from '../../../src/redis/keys.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { startAdminPort, type TestAdminPort } from '../../support/admin-port.ts';
import { freshPrefix, startRedis } from '../../support/redis.ts';
import { everydayCalls, hostileCalls, hostileNames, writeHistory, type PastCall } from '../usage-history.ts';
import { useTestStore } from '../../support/use-store.ts';
import { openTestStore } from '../../support/store.ts';

const now = Date.UTC(2027, 2, 31, 12);
const ios = { organizationId: 'acme', keyId: 'k_ios', client: 'ios-4.2', userAgent: 'App/4.2' };
const store = await useTestStore();
const opened: TestAdminPort[] = [];

afterAll(async () => {
  await Promise.all(opened.map((one) => one.close()));
});

type Options = Partial<Parameters<typeof startAdminPort>[0]>;

async function history(
  stretches: readonly (readonly [number, number])[],
  calls: readonly PastCall[],
  options: Options = {},
): Promise<TestAdminPort> {
  const { keyPrefix = freshPrefix() } = options;
  await writeHistory(store, keyPrefix, stretches, calls);
  const port = await startAdminPort({ store, now: () => now, ...options, keyPrefix });
  opened.push(port);
  return port;
}

/** What a reader without a screen gets: the text, without markup. */
const textOf = (markup: string) => markup.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
/** The page's sections and tables as text, by id and by class. */
const read = async (port: TestAdminPort, query = '') => {
  const { status, text: page } = await port.ask(`/${query}`);
  expect(status).toBe(200);
  const sections = page.matchAll(/<section id="(\w+)".*?<\/section>/gs);
  const text: Record<string, string> = Object.fromEntries(
    Array.from(sections, ([markup, id]) => [id, textOf(markup)]),
  );
  text['days'] = textOf(/<table class="days">.*?<\/table>/s.exec(page)?.[0] ?? '');
  return { text, page };
};

describe('the status of the deprecation', () => {
  const at = (text: string) => Date.parse(text);
  test.each<[string, Options['policy'], string[]]>([
    ['nothing announced', {}, ['Not announced', 'No deprecation announced']],
    [
      'no sunset yet',
      { deprecatedAt: at('2027-01-01') },
      ['Deprecated since 1 Jan 2027', 'No sunset date yet'],
    ],
    [
      'days to sunset',
      {
        deprecatedAt: at('2027-01-01'),
        sunsetAt: at('2027-04-10'),
        brownouts: [{ start: at('2027-04-05T10:00:00Z'), end: at('2027-04-05T11:30:00Z') }],
      },
      [
        '10 days to sunset',
        'calls are answered with 410',
        'Brownout 5 Apr 2027, 10:00 – 11:30',
        'Today 31 Mar 2027',
        'Sunset 10 Apr 2027',
      ],
    ],
    [
      'one day',
      { sunsetAt: at('2027-04-01'), afterSunset: 'serve' },
      ['1 day to sunset', 'calls are still served'],
    ],
    [
      'a brownout',
      { brownouts: [{ start: now - 1000, end: now + 60_000 }] },
      ['Brownout until 31 Mar 2027, 12:01'],
    ],
    ['a sunset that has passed', { sunsetAt: now - dayMs }, ['Sunset on 30 Mar 2027']],
    [
      'a sunset before the deprecation',
      { deprecatedAt: at('2027-06-01'), sunsetAt: at('2027-05-01'), afterSunset: 'gone' },
      ['Warning: the sunset (2027-05-01T00:00:00Z) is before the deprecation (2027-06-01T00:00:00Z)'],
    ],
    [
      'exemptions that still hold',
      {
        exemptions: [
          { organizationId: 'acme', until: now + dayMs },
          { organizationId: 'over', until: now },
        ],
      },
      ['Exempt from brownouts and sunset: organization acme until 1 Apr 2027, 12:00'],
    ],
  ])('%s', async (_name, policy, expected) => {
    const port = await history([], [], { policy: policy ?? {} });
    const { text } = await read(port);
    for (const words of expected) expect(text['policy']).toContain(words);
    expect(text['policy']).not.toContain('over until');
  });
});

describe('the calls on the dashboard', () => {
  let port: TestAdminPort;
  beforeAll(async () => {
    port = await history(
      [
        [now - 60 * dayMs, now - 20 * dayMs],
        [now - 18 * dayMs, now],
      ],
      [
        { ...ios, at: now - dayMs, times: 1200 },
        { ...ios, at: now - 8 * dayMs, times: 800, operation: 'putProfile' },
        { at: now - 10 * dayMs, organizationId: 'globex', keyId: 'k_web', client: 'web', times: 3 },
        { at: now - 50 * dayMs, organizationId: 'globex', keyId: 'k_old', client: 'old-one' },
        { at: now - 19 * dayMs, organizationId: 'globex', keyId: 'k_lost', client: 'nobody saw me' },
        { at: now - 5000, organizationId: 'acme', status: 401, times: 7 },
        { at: now - 6000, organizationId: 'no such', status: 401 },
      ],
    );
  });

  test('are shown by client, the latest first, with quiet clients in a section of their own', async () => {
    const { text } = await read(port);
    expect(text['calling']).toContain('ios-4.2 acme 1 key, 1 user agent k_ios App/4.2 24 hours ago 2,000');
    expect(text['calling']).not.toContain('web');
    expect(text['quiet']).toMatch(
      /web .* 21 Mar 2027 10 days ago throughout 3 .* old-one .* 9 Feb 2027 50 days ago not throughout 0 /,
    );
    expect(text['quiet']).not.toContain('nobody saw me');
    expect(text['figures']).toMatch(/Calls 2,011 .*Clients calling 1 2 clients quiet Unattributed calls 8/);
    expect(text['unattributed']).toContain('acme 7');
  });

  test('whose key was not checked are told apart, and leave silence unmeasured', async () => {
    const silent = await history(
      [[now - 60 * dayMs, now]],
      [
        { ...ios, at: now - 10 * dayMs },
        { at: now - 20 * dayMs, organizationId: 'globex', keyId: 'k_web', client: 'web' },
        { at: now - 5000, organizationId: 'acme', status: 410, isUnchecked: true, times: 7 },
        { at: now - 6000, organizationId: 'acme', status: 401, times: 2 },
      ],
    );
    const { text } = await read(silent);
    expect(text['calling']).toContain('No client is known to have called in the last 7 days, but calls');
    expect(text['coverage']).toContain('made none (calls whose key was not checked may be theirs).');
    expect(text['quiet']).toContain('Calls whose key was not checked may be theirs.');
    expect(text['quiet']).toMatch(/ios-4.2 .* not throughout .* web .* 20 days ago throughout /);
    expect(text['unattributed']).toMatch(
      /acme 7 just now \(key not checked\) acme 2 just now \(unattributed\)/,
    );
  });

  test('are shown by day, with "not measured" instead of 0 where nothing was counting', async () => {
    const { text, page } = await read(port);
    expect(text['days']).toContain('12 Mar 2027 not measured – – – no');
    expect(text['days']).toContain('30 Mar 2027 1,200 1,200 0 0 yes');
    expect(text['coverage']).toContain('11 Mar 2027, 12:00 – 13 Mar 2027, 12:00 2 days');
    expect(text['figures']).toMatch(/Measured 93\.\d% 1 gap/);
    // Some versions of ICU write a comma after the weekday.
    const titles = Array.from(
      page.matchAll(/<title>(\w+),?([^<]* 2027[^<]*)<\/title>/g),
      ([, day, rest]) => `${day}${rest}`,
    );
    expect(titles).toHaveLength(30);
    expect(titles).toContain('Friday 12 March 2027: not measured');
    expect(titles).toContain('Wednesday 17 March 2027: 0 calls');
    expect(titles).toContain('Thursday 11 March 2027: 0 calls, not measured throughout');
    expect(titles).toContain('Tuesday 30 March 2027: 1,200 calls (getProfile 1,200)');
    expect(titles).toContain('Wednesday 31 March 2027: 8 calls (getProfile 8), so far');
    // The gap of two days among thirty begins at noon of the tenth.
    expect(page).toContain('<rect class="gap" x="31.667%" width="6.667%" height="240" />');
  });

  test("are those of the organization and days in the page's address", async () => {
    const globex = await read(port, '?organization=globex&days=90');
    expect(globex.text['figures']).toMatch(/Calls 4 /);
    expect(globex.text['calling']).toContain('No client has called in the last 7 days.');
    const { text } = await read(port, '?from=2027-03-23&to=2027-03-24');
    expect(text['figures']).toMatch(/Calls 800 /);
    const { text: page } = await port.ask('/?organization=globex&days=90');
    expect(page).toContain('<option value="globex" selected>');
    expect(page).toMatch(/href="\?organization=globex&amp;days=90"\s+aria-current="true"/);
    expect(page).toContain(
      '/usage?format=csv&amp;group=client&amp;from=2027-01-01&amp;to=2027-03-31&amp;organization=globex',
    );
  });

  test('are grouped as the address says, by default by client and status', async () => {
    const { text, page } = await read(port);
    expect(text['breakdown']).toMatch(
      /Calls by client, status .* acme ios-4.2 2xx 2,000 .* acme \(unattributed\) 4xx 7 /,
    );
    expect(page).toContain('by client,status</a>');
    expect((await read(port, '?group=operation')).page.split('by operation</a>')).toHaveLength(2);
    const { text: other } = await read(port, '?days=30&group=operation,status');
    expect(other['breakdown']).toMatch(/Calls by operation, status .* getProfile 2xx 1,203 /);
    expect((await port.ask('/?group=colour')).status).toBe(400);
  });

  test('keep their grouping where another organization or other dates are chosen', async () => {
    const { page } = await read(port, '?group=operation&clients=all');
    for (const field of ['name="group" value="operation"', 'name="clients" value="all"']) {
      expect(page.split(`<input type="hidden" ${field} />`)).toHaveLength(3);
    }
  });

  test('are not shown for an invalid address', async () => {
    for (const query of [
      '?days=0',
      '?days=x',
      '?days=0x1e',
      '?days=',
      '?from=2027-04-01&to=2027-03-01',
      '?day=3',
      '?days=3&days=4',
      '?from=1999-01-01',
    ]) {
      const { status, text } = await port.ask(`/${query}`);
      expect([query, status]).toEqual([query, 400]);
      expect(text).toContain('role="alert"');
    }
  });
});

describe('a period without calls', () => {
  test('is shown as "No calls" if it was measured', async () => {
    const { text } = await read(await history([[now - 40 * dayMs, now]], [{ ...ios, at: now - 39 * dayMs }]));
    expect(text['calls']).toContain(
      'No calls in these 30 days The whole period was measured: nobody called. There are calls at other times',
    );
    expect(text['figures']).toContain('Measured 100% no gap');
    expect(text['coverage']).toContain(
      'The whole period was measured: a client shown without calls made none.',
    );
  });

  test('may be a single day', async () => {
    const { text } = await read(await history([[now - 3 * dayMs, now]], []), '?days=1');
    expect(text['calls']).toContain('No calls on this day');
  });

  test('is shown as "No calls", with a warning, if only part of it was measured', async () => {
    const { text } = await read(await history([[now - 3 * dayMs, now]], []));
    expect(text['calls']).toContain('No calls in these 30 days Part of the period was not measured');
  });

  test('is shown as "not measured" if nothing was counting', async () => {
    const { text } = await read(await history([], []));
    expect(text['calls']).toContain('Nothing was measured in these 30 days');
    expect(text['figures']).toContain('Calls not measured');
    expect(text['calling']).toContain('it is unknown whether anybody calls');
    expect(text['unattributed']).toContain('Not measured');
    expect(text['days']).not.toMatch(/ 0 /);
  });
});

test('labels from clients cannot inject markup', async () => {
  const port = await history([[now - 40 * dayMs, now]], hostileCalls(now));
  const { text } = await port.ask('/');
  expect(text.match(/<script/g)).toHaveLength(1);
  expect(text.match(/<\/script>/g)).toHaveLength(1);
  expect(text).not.toMatch(/<img|<!--/);
  // Form values keep such characters; visible text does not.
  expect(text.replace(/value="[^"]*"/g, '')).not.toMatch(/\u202e|\u2066/);
  expect(text).toContain('gpj.‹202E›txt‹2066›');
  expect(text).toContain('👩‍👩‍👧🎮');
  const titles = Array.from(text.matchAll(/<title>.*?<\/title>/gs), ([title]) => title).join('');
  for (const one of hostileNames) expect(titles).toContain(html`${visible(one)}`.markup);
});

test('without Redis the page still shows the policy, and the remedy', async () => {
  const redis = await startRedis();
  const lost = await openTestStore(redis.url);
  const port = await startAdminPort({
    store: lost,
    keyPrefix: 'pb:',
    policy: { sunsetAt: Date.now() + 9.5 * dayMs },
  });
  await redis.stop();
  const { status, text } = await port.ask('/');
  expect(status).toBe(503);
  expect(textOf(text)).toMatch(/10 days to sunset .*The ledger cannot be read .*REDIS_URL/);
  await port.close();
  await closeRedis(lost);
});

test('the page shows the latest 50 of 500 clients, and all of them on request', async () => {
  const port = await history(
    [[now - 91 * dayMs, now]],
    everydayCalls({ now, days: 90, clients: 500, volume: 2 }),
  );
  const { page } = await read(port, '?days=90');
  const clients = (text: string) =>
    text.match(/<table class="wide clients">.*?<\/table>/gs)?.map((table) => table.match(/<tr[ >]/g)?.length);
  expect(clients(page)).toEqual([51, 51]);
  expect(textOf(page)).toContain('The first 50 of 384.');
  expect(clients((await read(port, '?days=90&clients=all')).page)).toEqual([385, 117]);
});

test('the page shows at most 1000 clients, and says where the others are', async () => {
  const calls = Array.from({ length: 1200 }, (_, i) => ({
    at: now - 1000,
    organizationId: 'acme',
    keyId: `k_${i}`,
  }));
  const port = await history([[now - dayMs, now]], calls);
  const { page } = await read(port, '?days=1');
  expect(textOf(page)).toContain('The first 50 of 1,200. Show 1,000');
  const all = await read(port, '?days=1&clients=all');
  expect(textOf(all.page)).toContain(
    'The first 1,000 of 1,200. The CSV at the end of this page has all of them.',
  );
});

test('a client is shown as quiet since an unknown time where the ledger has lost what it knew of its key', async () => {
  const keyPrefix = freshPrefix();
  const call = { at: now - 1000, organizationId: 'acme', keyId: 'k_1' };
  const port = await history([[now - dayMs, now]], [call], { keyPrefix });
  await store.unlink(usedKeyKey(organizationBase(keyPrefix, 'acme'), 'k_1'));
  const { text } = await read(port, '?days=1');
  expect(text['quiet']).toMatch(/k_1 acme unknown not throughout 1/);
});

test('the page lists the 1000 organizations that called last, and says how to see another', async () => {
  const calls = Array.from({ length: 1001 }, (_, i) => ({ at: now - 1000, organizationId: `org-${i}` }));
  const { page } = await read(await history([[now - dayMs, now]], calls), '?days=1');
  expect(page.match(/<option/g)).toHaveLength(1001);
  expect(textOf(page)).toContain('The 1,000 that called last; for another, add ?organization=ID');
});

test('no client is said not to call while the legacy service serves keys that are unknown here', async () => {
  const unknown = { organizationId: 'acme', keyId: undefined, at: now - dayMs };
  const served = await history([[now - 40 * dayMs, now]], [unknown]);
  const sentence =
    'No client is known to have called in the last 7 days, but the legacy service may have served calls with an API key that is unknown here.';
  expect((await read(served)).text['calling']).toContain(sentence);
  expect((await read(served, '?from=2027-03-01&to=2027-03-02')).text['calling']).toContain(sentence);

  const earlier = { ...unknown, at: now - 10 * dayMs };
  const refused = await history([[now - 40 * dayMs, now]], [earlier, { ...unknown, status: 401 }]);
  expect((await read(refused)).text['calling']).toContain('No client has called in the last 7 days.');
});

test('many requests for the same page read Redis once', async () => {
  const redis = await startRedis();
  const own = await openTestStore(redis.url);
  const port = await startAdminPort({ store: own, keyPrefix: 'pb:', now: () => now });
  const commands = async () => Number(/total_commands_processed:(\d+)/.exec(await own.info('stats'))?.[1]);
  const before = await commands();
  await port.ask('/?days=7');
  const one = (await commands()) - before;
  await Promise.all(Array.from({ length: 20 }, () => port.ask('/')));
  expect((await commands()) - before).toBeLessThan(6 * one);
  await port.close();
  await closeRedis(own);
  await redis.stop();
});

describe('parts of the page', () => {
  test('visible() shows characters that would hide or reorder text', () => {
    expect(visible('a\u0000b\u202ec\ud800')).toBe('a‹0000›b‹202E›c‹D800›');
    // Soft hyphen, Hangul filler, tag.
    expect(visible('i\u00ados i\u3164os i\u{e0041}os')).toBe('i‹00AD›os i‹3164›os i‹E0041›os');
    const shownAsTheyAre = '👩\u200d🚀 ❤\ufe0f می\u200cخواهم';
    expect(visible(shownAsTheyAre)).toBe(shownAsTheyAre);
  });

  test('a share is 0% only if there were no calls', () => {
    expect([0, 0.0003, 0.015, 1].map(percent)).toEqual(['0%', '<0.1%', '1.5%', '100%']);
  });

  test('a sparkline has a hole where nothing was measured', () => {
    expect(sparkline([0, 10, null, 10]).markup).toContain('d="M0 22h0.5L40 2M120 2h0.5"');
    expect(sparkline(Array.from({ length: 400 }, () => null)).markup).toContain('d=""');
  });
});
