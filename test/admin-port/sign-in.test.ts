import { beforeEach, describe, expect, test } from '@jest/globals';
import { createSessions, sessionSeconds } from '../../src/admin-port/sessions.ts';
import { startAdminPort, TOKEN, type TestAdminPort } from '../support/admin-port.ts';
import { freshPrefix } from '../support/redis.ts';
import { useCleanup, useTestStore } from '../support/use-store.ts';

const store = await useTestStore();
let now = Date.now();
/** One for each test, because wrong tokens are limited by address. */
let port: TestAdminPort;
const toClose = useCleanup();

beforeEach(async () => {
  port = await startAdminPort({ store, keyPrefix: freshPrefix(), token: TOKEN, now: () => now });
  toClose.push(port.close);
});

const html = { accept: 'text/html' };
const signIn = (fields: Record<string, string>, headers: Record<string, string> = {}) =>
  port.ask('/login', {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(fields).toString(),
  });
const sessionIn = (setCookie: string | undefined) => /^pb_admin=([^;]*)/.exec(setCookie ?? '')?.[1] ?? '';

describe('a person who opens the dashboard', () => {
  test('is redirected to the sign-in form, and from there back to the page', async () => {
    const wanted = '/?organization=a%26b&days=7';
    const led = await port.ask(wanted, { headers: html });
    expect([led.status, led.headers['location']]).toEqual([303, `/login?to=${encodeURIComponent(wanted)}`]);
    const { text } = await port.ask(led.headers['location'] ?? '', { headers: html });
    expect(text).toContain('name="to" value="/?organization=a%26b&amp;days=7"');

    const done = await signIn({ token: TOKEN, to: wanted });
    expect([done.status, done.headers['location']]).toEqual([303, wanted]);
    const cookie = `pb_admin=${sessionIn(done.headers['set-cookie'])}`;
    expect((await port.ask(wanted, { headers: { ...html, cookie } })).status).toBe(200);
    expect((await port.ask('/usage', { headers: { cookie: `other=1; ${cookie}` } })).status).toBe(200);
    expect((await port.ask('/login', { headers: { ...html, cookie } })).headers['location']).toBe('/');
  });

  test('gets a cookie that is HttpOnly, SameSite=Strict and, over TLS, Secure', async () => {
    const plain = await signIn({ token: TOKEN });
    expect(plain.headers['set-cookie']).toMatch(
      /; Max-Age=43200; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Strict$/,
    );
    expect(plain.headers['set-cookie']).not.toContain(TOKEN);
    const tls = await signIn({ token: TOKEN }, { 'x-forwarded-proto': 'https' });
    expect(tls.headers['set-cookie']).toContain('; Secure');
  });

  test.each([
    'https://evil.example/',
    '//evil.example',
    '/\\evil.example',
    '/\t/evil.example',
    'javascript:alert(1)',
    '/a\r\nb',
  ])('is not redirected to another site: %j', async (to) => {
    expect((await signIn({ token: TOKEN, to })).headers['location']).toBe('/');
    const { text } = await port.ask(`/login?to=${encodeURIComponent(to)}`, { headers: html });
    expect(text).toContain('name="to" value="/"');
  });

  test('sees in the form that the token is wrong', async () => {
    const answer = await signIn({ token: 'wrong', to: '/?days=7' });
    expect(answer.status).toBe(401);
    expect(answer.headers['set-cookie']).toBeUndefined();
    expect(answer.text).toContain('role="alert"');
    expect(answer.text).toContain('value="/?days=7"');
    expect((await signIn({})).status).toBe(401);
  });

  test('loses the cookie by signing out', async () => {
    const answer = await port.ask('/logout', { method: 'POST' });
    expect([answer.status, answer.headers['location']]).toEqual([303, '/login']);
    expect(answer.headers['set-cookie']).toMatch(/^pb_admin=; Path=\/; Expires=Thu, 01 Jan 1970/);
  });
});

test('an address that sends ten wrong tokens gets 429 for more, and the right token still works', async () => {
  const guess = (i: number) =>
    i % 2 === 0
      ? signIn({ token: `guess-${i}` })
      : port.ask('/usage', { headers: { authorization: `Bearer guess-${i}` } });
  for (let i = 0; i < 10; i += 1) expect((await guess(i)).status).toBe(401);
  for (const answer of [await guess(10), await guess(11)]) {
    expect(answer.status).toBe(429);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(60);
  }
  // Behind a proxy, everybody has the same address.
  expect((await port.ask('/usage', { headers: { authorization: `Bearer ${TOKEN}` } })).status).toBe(200);
  expect((await signIn({ token: TOKEN })).status).toBe(303);
});

test('a sign-in body that is too large gets 413, one of another type 401', async () => {
  const tooLarge = await signIn({ token: 'x'.repeat(5000) });
  expect([tooLarge.status, tooLarge.body]).toMatchObject([413, { status: 413 }]);
  const answer = await port.ask('/login', {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: 'x',
  });
  expect(answer.status).toBe(401);
});

describe('a session', () => {
  test('ends after twelve hours without use, and is extended by use', async () => {
    const first = sessionIn((await signIn({ token: TOKEN })).headers['set-cookie']);
    const at = async (cookie: string) =>
      await port.ask('/usage', { headers: { cookie: `pb_admin=${cookie}` } });
    now += 5 * 3600_000;
    expect((await at(first)).headers['set-cookie']).toBeUndefined();
    now += 2 * 3600_000;
    const renewed = sessionIn((await at(first)).headers['set-cookie']);
    now += 6 * 3600_000;
    expect((await at(first)).status).toBe(401);
    expect((await at(renewed)).status).toBe(200);
  });

  test('is valid on every instance and after a restart, until the token changes', () => {
    const value = createSessions(TOKEN, () => 0).issue();
    expect(createSessions(TOKEN, () => 0).secondsLeft(value)).toBe(sessionSeconds);
    expect(createSessions(`${TOKEN}2`, () => 0).secondsLeft(value)).toBeUndefined();
  });

  test('cannot be forged or extended by its holder', () => {
    const sessions = createSessions(TOKEN, () => 0);
    const value = sessions.issue();
    const [end = '', nonce = '', proof = ''] = value.split('.');
    for (const forged of [
      '',
      `${Number(end) + 1}.${nonce}.${proof}`,
      `${end}.${nonce.replace(/./, (c) => (c === 'A' ? 'B' : 'A'))}.${proof}`,
      `${end}.${nonce}.${proof.replace(/./, (c) => (c === 'A' ? 'B' : 'A'))}`,
      `${end}.${nonce}.`,
      `${end}.${nonce}`,
      `${value}x`,
    ]) {
      expect(sessions.secondsLeft(forged)).toBeUndefined();
    }
  });
});
