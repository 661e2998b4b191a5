import { once } from 'node:events';
import { get as sendGet, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { startBridge, type TestBridge } from '../../support/bridge.ts';

const publicBaseUrl = 'https://api.example/legacy';
let bridge: TestBridge;

beforeAll(async () => {
  bridge = await startBridge({ publicBaseUrl });
});
afterAll(() => bridge.close());

async function get(path: string, headers: Record<string, string> = {}) {
  // fetch would decompress by itself.
  const [response] = (await once(sendGet(bridge.url + path, { headers }), 'response')) as [IncomingMessage];
  return { status: response.statusCode, headers: response.headers, bytes: await buffer(response) };
}

describe.each(['/openapi.yaml', '/docs/'])('%s', (path) => {
  test('is compressed for clients that accept it', async () => {
    const plain = await get(path);
    const compressed = await get(path, { 'accept-encoding': 'br, gzip' });
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(compressed.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
    expect(compressed.bytes.length).toBeLessThan(plain.bytes.length / 3);
    expect(gunzipSync(compressed.bytes).equals(plain.bytes)).toBe(true);
    expect((await get(path, { 'accept-encoding': 'gzip;q=0' })).headers['content-encoding']).toBeUndefined();
  });

  test('is not sent again to clients that have it', async () => {
    const { etag = '' } = (await get(path)).headers;
    expect(etag).toMatch(/^W\/"[\w-]{43}"$/);
    const again = await get(path, { 'if-none-match': etag, 'accept-encoding': 'gzip' });
    expect(again).toMatchObject({ status: 304, bytes: Buffer.alloc(0), headers: { etag } });
    expect((await get(path, { 'if-none-match': '"another"' })).status).toBe(200);
  });
});

describe('with the address that clients use configured, links to the service are absolute', () => {
  test('in the Link header', async () => {
    const { headers } = await get('/api/profile/');
    expect(headers['link']).toContain(`<${publicBaseUrl}/docs/#deprecation>; rel="deprecation"`);
  });

  test('in the type of a problem', async () => {
    const { status, bytes } = await get('/api/profile/');
    expect(status).toBe(401);
    expect(JSON.parse(String(bytes))).toMatchObject({
      type: `${publicBaseUrl}/docs/#problem-missing-credentials`,
    });
  });

  test('in the documentation', async () => {
    expect(String((await get('/docs/')).bytes)).toContain(`href="${publicBaseUrl}/openapi.yaml"`);
  });

  test('in openapi.yaml, whose server it is', async () => {
    const { servers } = parse(String((await get('/openapi.yaml')).bytes)) as { servers: unknown };
    expect(servers).toEqual([{ url: publicBaseUrl, description: 'This deployment' }]);
  });
});
