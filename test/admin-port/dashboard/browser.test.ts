import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { dayMs } from '../../../src/lib/days.ts';
import type { DeprecationPolicy } from '../../../src/deprecation/policy/policy.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { describeInBrowser, expectAccessible, launchBrowser, openPage, type Watched } from './browser.ts';
import { writeCutover } from './cutover-history.ts';
import { startAdminPort, TOKEN, type TestAdminPort } from '../../support/admin-port.ts';
import { freshPrefix, startRedis } from '../../support/redis.ts';
import { everydayCalls, hostileCalls, hostileNames, writeHistory, type PastCall } from '../usage-history.ts';
import { openTestStore } from '../../support/store.ts';

describeInBrowser('the dashboard in a browser', () => {
  /** Noon of today: no test depends on the time of day. */
  const now = Math.floor(Date.now() / dayMs) * dayMs + dayMs / 2;
  let browser: Browser;
  let store: RedisClient;
  /** What the server's clock is ahead, in ms. */
  let passed = 0;
  const toClose: (() => Promise<unknown>)[] = [];
  const policy: Partial<DeprecationPolicy> = {
    deprecatedAt: now - 90 * dayMs,
    sunsetAt: now + 200.5 * dayMs,
    successorUrl: 'https://kv.example.com/',
    brownouts: [
      { start: now + 20 * dayMs, end: now + 20 * dayMs + 3_600_000 },
      { start: now + 100 * dayMs, end: now + 102 * dayMs },
    ],
    exemptions: [{ organizationId: 'acme', until: now + 150 * dayMs }],
  };

  beforeAll(async () => {
    browser = await launchBrowser();
    store = await openTestStore();
  });
  afterAll(async () => {
    await browser.close();
    await Promise.all(toClose.map((close) => close()));
    await closeRedis(store);
  });

  const serve = async (
    calls: readonly PastCall[],
    options: {
      client?: RedisClient;
      stretches?: [number, number][];
      token?: string;
      keyPrefix?: string;
    } = {},
  ): Promise<TestAdminPort> => {
    const { client = store, stretches = [[now - 40 * dayMs, now]], keyPrefix = freshPrefix() } = options;
    await writeHistory(client, keyPrefix, stretches, calls);
    const port = await startAdminPort({
      store: client,
      keyPrefix,
      policy,
      now: () => now + passed,
      ...(options.token && { token: options.token }),
    });
    toClose.push(port.close);
    return port;
  };
  const visit = async (url: string, options: BrowserContextOptions = {}): Promise<Watched> => {
    const watched = await openPage(browser, options);
    await watched.page.goto(url);
    return watched;
  };

  // Pages that are only looked at.
  let [everydayPort, hostilePort]: Promise<TestAdminPort>[] = [];
  const everyday = () =>
    (everydayPort ??= serve(
      [
        ...everydayCalls({ now, days: 60, clients: 12, volume: 10 }),
        { at: now - 5000, organizationId: 'acme', status: 401, times: 3 },
      ],
      {
        stretches: [
          [now - 55 * dayMs, now - 12 * dayMs],
          [now - 10 * dayMs, now - 3_600_000],
          [now - 1_800_000, now],
        ],
      },
    ));
  const hostile = () => (hostilePort ??= serve(hostileCalls(now)));

  const cutover = async () => {
    const keyPrefix = freshPrefix();
    const modes = ['shadow', 'mirror', 'shadow', 'mirror'] as const;
    const [day, past] = [dayMs, Date.now() - 9 * dayMs];
    const since = [past, past + 2 * day, past + 3 * day, past + 3.2 * day];
    const instance = await writeCutover(
      store,
      keyPrefix,
      modes.map((mode, i) => ({ mode, since: since[i] ?? past })),
    );
    toClose.push(instance.close);
    return await serve([], { keyPrefix });
  };

  const light = { colorScheme: 'light' } as const;
  const darkPhone = {
    colorScheme: 'dark',
    viewport: { width: 390, height: 844 },
    reducedMotion: 'reduce',
  } as const;
  test.each<[string, () => Promise<TestAdminPort>, BrowserContextOptions[]]>([
    ['everyday', everyday, [light, darkPhone]],
    ['hostile labels', hostile, [light, darkPhone]],
    ['empty', () => serve([], { stretches: [] }), [darkPhone]],
    ['cut-over', cutover, [light, darkPhone]],
  ])('is accessible by WCAG AA, obeys its own policy and fits the screen: %s', async (_name, open, looks) => {
    const port = await open();
    for (const options of looks) {
      const watched = await visit(`${port.url}/?days=30`, options);
      const { page, context, complaints } = watched;
      // Everything is unfolded, so that all of it is checked.
      await page.evaluate('for (const details of document.querySelectorAll("details")) details.open = true');
      await expectAccessible(watched);
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
      expect(await page.title()).toBe('201 days to sunset · Profile Bridge');
      expect(complaints).toEqual([]);
      await context.close();
    }
  });

  test('draws a bar for each day, with its figures as a tooltip', async () => {
    const port = await everyday();
    const { page, context } = await visit(`${port.url}/?days=30`);
    const days = page.locator('.chart .day');
    expect(await days.count()).toBe(30);
    const figures = await days.locator('title').allTextContents();
    expect(figures[29]).toMatch(
      /: [\d,]+ calls \(getProfile \d+, putProfile \d+.*\), not measured throughout, so far$/,
    );
    expect(figures[18]).toMatch(/: not measured$/);
    const heightOf = async (selector: string) =>
      (await days.nth(29).locator(selector).boundingBox())?.height ?? 0;
    expect(await heightOf('.colour-0')).toBeGreaterThan(10);
    expect(await heightOf('.colour-0')).toBeGreaterThan(await heightOf('.colour-1'));
    expect(await days.nth(18).locator('[class^=colour]').count()).toBe(0);
    await context.close();
  });

  test('can be filtered by keyboard, and keeps the filter in its address', async () => {
    const port = await everyday();
    const { page, context } = await visit(port.url);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForURL(/#content$/);
    await page.getByLabel('Organization').focus();
    await page.keyboard.type('globex');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${port.url}/?organization=globex&days=30`);
    await page.getByRole('link', { name: '90 days' }).click();
    await page.waitForURL(`${port.url}/?organization=globex&days=90`);
    expect(await page.getByLabel('Organization').inputValue()).toBe('globex');
    expect(await page.getByRole('link', { name: '90 days' }).getAttribute('aria-current')).toBe('true');
    await page.getByText('Other dates').click();
    await page.getByLabel('From').fill(new Date(now - 3 * dayMs).toISOString().slice(0, 10));
    await page.locator('#dates button').click();
    await page.waitForURL(/\/\?organization=globex&from=[\d-]{10}&to=[\d-]{10}$/);
    const download = page.waitForEvent('download');
    await page.getByRole('link', { name: 'by client', exact: true }).click();
    expect((await download).suggestedFilename()).toMatch(/^usage-by-client-.*\.csv$/);
    await context.close();
  });

  test('refreshes itself while visible, and keeps focus, selection and open details', async () => {
    const keyPrefix = freshPrefix();
    const ios = { organizationId: 'acme', keyId: 'k_ios', client: 'ios-4.2', userAgent: 'App/4.2' };
    const port = await serve([{ ...ios, at: now - 2000, times: 3 }], { keyPrefix });
    const { page, context, complaints } = await openPage(browser);
    await page.clock.install();
    await page.goto(port.url);
    let asked = 0;
    page.on('request', (request) => (asked += request.resourceType() === 'fetch' ? 1 : 0));
    const calls = page.locator('#calling td[data-name=Calls]');
    expect(await calls.textContent()).toBe('3');
    await page.locator('#calling summary').click();
    await page.locator('#calling summary').focus();
    await page.evaluate(
      'window.before = document.querySelector("#calling table"); getSelection().selectAllChildren(document.querySelector("#calling th bdi"))',
    );

    await writeHistory(store, keyPrefix, [[now - 1900, now]], [{ ...ios, at: now - 1000, times: 4 }]);
    // What was read a moment ago is shared for five seconds.
    passed += 5000;
    await page.clock.runFor(15_000);
    await page.locator('#calling td[data-name=Calls]', { hasText: '7' }).waitFor();
    expect(asked).toBe(1);
    expect(await page.evaluate('window.before === document.querySelector("#calling table")')).toBe(true);
    expect(await page.evaluate('document.querySelector("#calling details").open')).toBe(true);
    expect(await page.evaluate('document.activeElement === document.querySelector("#calling summary")')).toBe(
      true,
    );
    expect(await page.evaluate('String(getSelection())')).toBe('ios-4.2');

    const hide = (hidden: boolean) =>
      page.evaluate(
        `Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`,
      );
    await hide(true);
    await page.clock.runFor(120_000);
    expect(asked).toBe(1);
    const answered = page.waitForResponse(port.url + '/');
    await hide(false);
    await page.clock.runFor(10);
    await answered;
    expect(asked).toBe(2);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('keeps open what is open of a client when clients change places', async () => {
    const keyPrefix = freshPrefix();
    const called = (client: string, ago: number) => ({
      at: now - ago,
      organizationId: 'acme',
      keyId: `k_${client}`,
      client,
    });
    const port = await serve([called('web', 2000), called('ios', 3000), called('old', 4000)], { keyPrefix });
    const { page, context, complaints } = await openPage(browser);
    await page.clock.install();
    await page.goto(port.url);
    const names = page.locator('#calling th > bdi');
    const open = page.locator('#calling tr', { has: page.locator('details[open]') });
    await page.locator('#calling tr', { hasText: 'k_ios' }).locator('summary').click();
    await page.locator('#calling tr', { hasText: 'k_ios' }).locator('summary').focus();
    for (const [first, ago, order] of [
      ['old', 1500, ['old', 'web', 'ios']],
      ['ios', 1000, ['ios', 'old', 'web']],
      ['tvos', 500, ['tvos', 'ios', 'old', 'web']],
    ] as const) {
      await writeHistory(store, keyPrefix, [[now - ago - 1, now]], [called(first, ago)]);
      passed += 5000;
      await page.clock.runFor(15_000);
      await page.locator('#calling tbody tr:first-child', { hasText: `k_${first}` }).waitFor();
      expect(await names.allTextContents()).toEqual(order);
      expect(await open.count()).toBe(1);
      expect(await open.textContent()).toContain('k_ios');
      const focused = await page.evaluate('document.activeElement.closest("tr")?.textContent');
      expect(focused).toContain('k_ios');
    }
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('reports when the figures are out of date, and why', async () => {
    const redis = await startRedis();
    const client = await openTestStore(redis.url);
    const port = await serve([{ at: now - 2000, organizationId: 'acme', keyId: 'k_1', client: 'ios' }], {
      client,
    });
    const { page, context } = await openPage(browser);
    await page.clock.install();
    await page.goto(port.url);
    await redis.stop();
    passed += 5000;
    await page.clock.runFor(15_000);
    await page.getByText('The ledger cannot be read. These are the last known figures.').waitFor();
    expect(await page.locator('#calling td[data-name=Calls]').textContent()).toBe('1');
    const fresh = await visit(port.url);
    await fresh.page.getByRole('alert').getByText('The ledger cannot be read').waitFor();
    await expectAccessible(fresh);
    await fresh.context.close();
    await page.route(port.url, (route) => route.fulfill({ status: 502, body: '<h1>Bad Gateway</h1>' }));
    await page.clock.runFor(15_000);
    await page.getByText('The status is 502. These are the last known figures.').waitFor();
    await page.unroute(port.url);
    await port.close();
    await page.clock.runFor(15_000);
    await page.getByText('The bridge does not answer. These are the last known figures.').waitFor();
    await context.close();
    await closeRedis(client);
  });

  test('shows hostile labels as plain text', async () => {
    const port = await hostile();
    const { page, context, complaints } = await visit(port.url);
    for (const text of hostileNames.slice(0, 3)) {
      expect(await page.locator('#calling th > bdi').getByText(text, { exact: true }).count()).toBe(1);
    }
    expect(await page.locator('#calling th > bdi').allInnerTexts()).toContain('two  spaces');
    expect(await page.getByText('gpj.‹202E›txt‹2066›').count()).toBeGreaterThan(1);
    expect(await page.locator('img, body script').count()).toBe(0);
    expect(await page.locator('.chart .day title').last().textContent()).toContain(hostileNames[0]);
    expect(await page.title()).not.toBe('hacked');
    expect(complaints).toEqual([]);
    await page.getByLabel('Organization').selectOption(hostileNames[1] ?? '');
    await page.getByRole('button', { name: 'Show' }).first().click();
    await page.waitForURL(/organization=/);
    expect(await page.locator('#calling tbody tr').count()).toBe(1);
    await context.close();
  });

  test('is complete without JavaScript', async () => {
    const port = await everyday();
    const { page, context } = await visit(port.url, { javaScriptEnabled: false });
    expect(await page.locator('.chart').isVisible()).toBe(true);
    expect(await page.locator('#calling tbody tr').count()).toBeGreaterThan(5);
    await page.getByText('Every day as a table').click();
    expect(await page.locator('#days tbody tr').count()).toBe(30);
    await page.getByLabel('Organization').selectOption('globex');
    await page.getByRole('button', { name: 'Show' }).first().click();
    await page.waitForURL(/organization=globex/);
    await context.close();
  });

  test('opens after signing in, and closes by signing out', async () => {
    const port = await serve([], { token: TOKEN });
    const watched = await visit(`${port.url}/?days=7`);
    const { page, context, complaints } = watched;
    await expectAccessible(watched);
    expect(await page.evaluate('document.activeElement.id')).toBe('token');
    await page.keyboard.type('not the token');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    await expectAccessible(watched);
    await page.getByLabel('Admin token').fill(TOKEN);
    await page.keyboard.press('Enter');
    await page.waitForURL(`${port.url}/?days=7`);
    expect(await context.cookies()).toMatchObject([
      { name: 'pb_admin', httpOnly: true, sameSite: 'Strict', path: '/' },
    ]);
    expect(await page.evaluate('document.cookie')).toBe('');
    const elsewhere = `data:text/html,<a href="${port.url}/?days=90">see</a>`;
    await page.goto(elsewhere);
    await page.getByText('see').click();
    await page.getByRole('heading', { name: 'Calls per day' }).waitFor();
    expect(page.url()).toBe(`${port.url}/?days=90`);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL(`${port.url}/login`);
    await page.goto(port.url);
    expect(new URL(page.url()).pathname).toBe('/login');
    // The wrong token was a 401.
    expect(complaints.filter((text) => !text.includes('401'))).toEqual([]);
    await context.close();
  });
});
