import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startAdminPort, TOKEN, type TestAdminPort } from '../support/admin-port.ts';
import { freshPrefix } from '../support/redis.ts';
import { useTestStore } from '../support/use-store.ts';

const store = await useTestStore();
let open: TestAdminPort;
let guarded: TestAdminPort;

beforeAll(async () => {
  open = await startAdminPort({ store, keyPrefix: freshPrefix() });
  guarded = await startAdminPort({ store, keyPrefix: freshPrefix(), token: TOKEN });
});
afterAll(async () => {
  await Promise.all([open.close(), guarded.close()]);
});

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
const form = { 'content-type': 'application/x-www-form-urlencoded' };

describe('the admin port without a token', () => {
  test.each(['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]', '127.0.0.53'])(
    'answers requests whose host is %s',
    async (name) => {
      const { status } = await open.ask('/usage', { headers: { host: `${name}:${open.port}` } });
      expect(status).toBe(200);
    },
  );

  test.each([
    'evil.example:PORT',
    'evil.example',
    '127.0.0.1.evil.example:PORT',
    'localhost.evil.example:PORT',
    '10.0.0.1:PORT',
    '127.0.0.1:1',
    '127.0.0.1',
  ])('refuses requests whose host is "%s", for assets too', async (name) => {
    for (const path of ['/', '/usage', '/metrics', '/assets/x']) {
      const response = await open.ask(path, { headers: { host: name.replace('PORT', String(open.port)) } });
      expect(response.status).toBe(421);
      expect(response.body).toMatchObject({ status: 421, remedy: expect.stringContaining('ADMIN_TOKEN') });
    }
  });

  test('has no sign-in form', async () => {
    expect((await open.ask('/login')).status).toBe(404);
  });
});

test('a malformed Host header is refused, with or without a token', async () => {
  for (const port of [open, guarded]) {
    const { status, headers, text } = await port.ask('/metrics', {
      headers: { ...bearer(TOKEN), host: 'a b' },
    });
    expect(status).toBe(400);
    expect(headers['content-type']).toMatch(/^application\/problem\+json/);
    expect(text).toContain('a malformed Host header');
  }
});

describe('requests from another site', () => {
  const fetched = { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' };
  test.each<[string, Record<string, string>]>([
    ['a fetch', { 'sec-fetch-site': 'cross-site', ...fetched }],
    ['a neighbour on the same host', { 'sec-fetch-site': 'same-site', ...fetched }],
    ['a frame', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }],
    ['an older browser', { origin: 'http://evil.example' }],
    ['a sandboxed page', { origin: 'null' }],
  ])('are refused: %s', async (_name, headers) => {
    for (const port of [open, guarded]) {
      const response = await port.ask('/usage', { headers: { ...headers, ...bearer(TOKEN) } });
      expect(response.status).toBe(403);
      expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    }
  });

  test('are refused as a form, even with the right token', async () => {
    for (const headers of [
      { origin: 'http://evil.example' },
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
    ]) {
      const response = await guarded.ask('/login', {
        method: 'POST',
        headers: { ...form, ...headers },
        body: `token=${TOKEN}`,
      });
      expect(response.status).toBe(403);
      expect(response.headers['set-cookie']).toBeUndefined();
    }
  });

  test('are answered if a person follows a link', async () => {
    const visit = {
      'sec-fetch-site': 'cross-site',
      'sec-fetch-mode': 'navigate',
      'sec-fetch-dest': 'document',
    };
    expect((await open.ask('/', { headers: { ...browser, ...visit } })).status).toBe(200);
    const { text } = await guarded.ask('/?days=7', { headers: { ...browser, ...visit } });
    // Browsers send no strict cookie when a link from another site is followed, so the page reloads itself.
    expect(text).toContain('http-equiv="refresh" content="0; url=/?days=7"');
    const away = await guarded.ask('//evil.example/', { headers: { ...browser, ...visit } });
    expect(away.text).toContain('url=/"');
  });
});

test('every answer keeps browsers from caching it, framing it and running foreign scripts', async () => {
  const { headers } = await open.ask('/');
  expect(headers['content-security-policy']).toBe(
    "default-src 'none';script-src 'self';style-src 'self';img-src 'self';connect-src 'self';form-action 'self';base-uri 'none';frame-ancestors 'none'",
  );
  for (const [port, path] of [
    [open, '/'],
    [open, '/usage'],
    [open, '/usage?from=x'],
    [open, '/nowhere'],
    [guarded, '/usage'],
    [guarded, '/login'],
  ] as const) {
    expect((await port.ask(path)).headers).toMatchObject({
      'cache-control': 'no-store',
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'content-security-policy': headers['content-security-policy'],
    });
  }
});

test('assets are immutable in caches, since their path changes with their content', async () => {
  const { text } = await open.ask('/');
  const paths = [...text.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, path]) => path ?? '');
  expect(paths).toHaveLength(3);
  for (const path of paths) {
    const response = await open.ask(path);
    expect(response.status).toBe(200);
    expect(response.headers).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
    });
  }
  for (const path of ['/assets/x/client.js', '/assets/%2e%2e/page.ts', '/assets/..%2fpage.ts']) {
    expect((await open.ask(path)).status).toBe(404);
  }
});

describe('the Bearer token', () => {
  test('is required', async () => {
    for (const path of ['/metrics', '/usage', '/nowhere']) {
      const response = await guarded.ask(path);
      expect(response.status).toBe(401);
      expect(response.headers['www-authenticate']).toBe('Bearer realm="profile-bridge admin"');
    }
  });

  test('gives access to every path', async () => {
    for (const path of ['/metrics', '/usage', '/']) {
      expect((await guarded.ask(path, { headers: bearer(TOKEN) })).status).toBe(200);
    }
    const { headers, text } = await guarded.ask('/metrics', {
      headers: { authorization: `bearer ${TOKEN}` },
    });
    expect(headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(text).toContain('profile_bridge_redis_up 1');
  });

  test.each(['x', `${TOKEN}x`, TOKEN.slice(1), TOKEN.toUpperCase()])(
    'must be the right one, not %s',
    async (token) => {
      const response = await guarded.ask('/usage', { headers: bearer(token) });
      expect(response.status).toBe(401);
      expect(response.headers['www-authenticate']).toContain('error="invalid_token"');
      expect(response.text).not.toContain(TOKEN);
    },
  );

  test('is not accepted anywhere else in a request', async () => {
    expect((await guarded.ask(`/usage?token=${TOKEN}`)).status).toBe(401);
    expect((await guarded.ask('/usage', { headers: { authorization: `Basic ${TOKEN}` } })).status).toBe(401);
    expect((await guarded.ask('/usage', { headers: { cookie: `pb_admin=${TOKEN}` } })).status).toBe(401);
  });
});

test('every path refuses other methods than GET and HEAD with 405', async () => {
  for (const method of ['POST', 'PUT', 'DELETE']) {
    for (const path of ['/', '/usage', '/metrics']) {
      const response = await open.ask(path, { method });
      expect([response.status, response.headers['allow']]).toEqual([405, 'GET, HEAD']);
    }
  }
  expect(await open.ask('/usage', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
  expect((await open.ask('/nowhere', { method: 'POST' })).status).toBe(404);
  expect((await open.ask('/Usage')).status).toBe(404);
});
