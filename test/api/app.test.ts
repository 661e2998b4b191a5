import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import type { ContractDocument } from '../../src/contract/document.ts';
import { startBridge, type TestBridge } from '../support/bridge.ts';
import { createClient } from '../support/requests/client.ts';

let bridge: TestBridge;
beforeAll(async () => {
  bridge = await startBridge();
});
afterAll(async () => {
  await bridge.close();
});

const contractPaths = ['/api/profile/', '/api/profile/username/deny/', '/api/profile/username/denylist/'];

describe('paths and methods', () => {
  test.each(contractPaths)(
    '%s answers with and without its trailing slash, and other methods with 405 and Allow',
    async (path) => {
      const client = createClient(bridge.url);
      for (const form of [path, path.slice(0, -1)]) {
        const answer = await client.request('PATCH', form);
        expect([answer.status, answer.body]).toMatchObject([405, { code: 'method-not-allowed' }]);
        expect(answer.headers['allow']).toMatch(/^[A-Z]+(, [A-Z]+)+$/);
      }
    },
  );

  test('a query changes nothing', async () => {
    expect((await createClient(bridge.url).request('GET', '/api/profile/?a=b')).status).toBe(401);
  });

  test.each([
    '/',
    '/api',
    '/api/profile//',
    '/api/profiles/',
    '/api/profile/username',
    '/media/%E0%A4%A',
    '/%00',
  ])('%s is 404 not-found', async (path) => {
    const answer = await createClient(bridge.url).request('GET', path);
    expect([answer.status, answer.body]).toMatchObject([404, { code: 'not-found' }]);
  });

  test.each(['/livez', '/readyz', '/openapi.yaml', '/docs/'])(
    '%s answers GET, and 405 otherwise',
    async (path) => {
      const client = createClient(bridge.url);
      const otherForm = path.endsWith('/') ? path.slice(0, -1) : `${path}/`;
      expect((await fetch(bridge.url + otherForm, { redirect: 'manual' })).status).toBe(200);
      expect((await client.request('GET', path)).status).toBe(200);
      expect((await client.request('HEAD', path)).status).toBe(200);
      const answer = await client.request('POST', path, { json: {} });
      expect([answer.status, answer.headers['allow']]).toEqual([405, 'GET, HEAD, OPTIONS']);
    },
  );

  test.each(['/livez', '/readyz'])('%s answers with its body, whatever the client has', async (path) => {
    const headers = { 'if-none-match': '*' };
    const answer = await createClient(bridge.url).request('GET', path, { headers });
    expect([answer.status, answer.body]).toMatchObject([200, { status: 'ok' }]);
  });

  test.each([
    ['/api/profile/', 'GET, HEAD, PUT, OPTIONS'],
    ...['/livez', '/readyz', '/openapi.yaml', '/docs/', '/media/x.png'].map((path) => [
      path,
      'GET, HEAD, OPTIONS',
    ]),
  ])('OPTIONS %s without CORS is 204 with Allow', async (path, methods) => {
    const answer = await createClient(bridge.url).request('OPTIONS', path);
    expect([answer.status, answer.headers['allow']]).toEqual([204, methods]);
  });
});

describe('headers', () => {
  test('every answer of the contract has the deprecation headers, and no other does', async () => {
    const client = createClient(bridge.url);
    for (const path of contractPaths) {
      const { headers } = await client.request('GET', path);
      expect(headers['deprecation']).toBe(`@${Date.parse('2026-11-01T00:00:00Z') / 1000}`);
      expect(headers['sunset']).toBe('Fri, 31 Dec 2027 23:59:59 GMT');
      expect(headers['link']).toContain('rel="successor-version"');
      expect(headers['cache-control']).toBe('private, no-store');
    }
    for (const path of ['/livez', '/openapi.yaml', '/nothing']) {
      const { headers } = await client.request('GET', path);
      expect([headers['deprecation'], headers['sunset'], headers['link']]).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
    }
  });

  test('the environment overrides what openapi.yaml announces', async () => {
    const other = await startBridge({
      deprecation: {
        deprecatedAt: Date.parse('2025-01-01T00:00:00Z'),
        sunsetAt: Date.parse('2026-06-30T12:00:00Z'),
      },
    });
    try {
      const { headers } = await createClient(other.url).request('GET', '/api/profile/');
      expect([headers['deprecation'], headers['sunset']]).toEqual([
        '@1735689600',
        'Tue, 30 Jun 2026 12:00:00 GMT',
      ]);
    } finally {
      await other.close();
    }
  });

  test("a request's own id is kept if it is reasonable", async () => {
    const client = createClient(bridge.url);
    const id = async (given: string) =>
      (await client.request('GET', '/livez', { headers: { 'x-request-id': given } })).headers['x-request-id'];
    expect(await id('abc-123')).toBe('abc-123');
    expect(await id('<script>')).not.toContain('<');
  });
});

describe('CORS, where origins are configured', () => {
  let open: TestBridge;
  beforeAll(async () => {
    open = await startBridge({ corsOrigins: ['https://app.example'], corsHeaders: ['x-trace'] });
  });
  afterAll(async () => {
    await open.close();
  });

  test.each(['/api/profile/', '/media/x.png'])(
    'allow the preflight of a known origin for %s, and of no other',
    async (path) => {
      const preflight = (origin: string) =>
        createClient(open.url).request('OPTIONS', path, {
          headers: { origin, 'access-control-request-method': 'PUT' },
        });
      const answer = await preflight('https://app.example');
      expect(answer.status).toBe(204);
      expect(answer.headers['access-control-allow-origin']).toBe('https://app.example');
      expect(answer.headers['access-control-allow-headers']).toContain('x-api-key');
      expect(answer.headers['access-control-allow-headers']).toContain('x-trace');
      expect(
        (await preflight('https://evil.example')).headers['access-control-allow-origin'],
      ).toBeUndefined();
    },
  );

  test('errors can be read too, with the deprecation headers', async () => {
    const answer = await createClient(open.url).request('GET', '/api/profile/', {
      headers: { origin: 'https://app.example' },
    });
    expect(answer.headers['access-control-allow-origin']).toBe('https://app.example');
    expect(answer.headers['access-control-expose-headers']).toContain('Deprecation');
  });

  test.each(['/api/profile/', '/livez', '/openapi.yaml', '/docs/'])(
    '%s tells caches that its headers depend on the origin',
    async (path) => {
      const { headers } = await createClient(open.url).request('GET', path);
      expect(headers['vary']?.split(', ')).toContain('Origin');
    },
  );
});

test('a rate limit, where configured, answers 429 with Retry-After and the RateLimit fields', async () => {
  const limited = await startBridge({ rateLimit: { requests: 2, seconds: 60 } });
  try {
    const player = await (await limited.newOrganization()).player('u1');
    const answers = [];
    for (let i = 0; i < 3; i++) answers.push(await player.request('GET', '/api/profile/'));
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 429]);
    expect(answers[0]?.headers['ratelimit']).toMatch(/^"key";r=1;t=\d+$/);
    expect(Number(answers[2]?.headers['retry-after'])).toBeGreaterThan(0);
  } finally {
    await limited.close();
  }
});

test('the organization header may have another name, which the documentation names', async () => {
  const branded = await startBridge({ organizationHeader: 'x-acme-organization-id' });
  try {
    const player = await (await branded.newOrganization({}, 'örg')).player('u1');
    expect((await player.request('PUT', '/api/profile/', { json: {} })).status).toBe(200);
    const { text: docs } = await player.request('GET', '/docs/');
    const { text: contract } = await player.request('GET', '/openapi.yaml');
    expect(docs).toContain('-H &quot;x-acme-organization-id: $ORGANIZATION_ID&quot; |');
    expect(docs).toContain('<code>x-acme-organization-id</code>');
    expect(docs + contract).not.toContain('x-platform-organization-id');
    const { components } = parse(contract) as ContractDocument;
    expect(components.securitySchemes.organization.name).toBe('x-acme-organization-id');
  } finally {
    await branded.close();
  }
});
