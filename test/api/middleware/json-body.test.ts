import { once } from 'node:events';
import { connect } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startBridge, type TestBridge } from '../../support/bridge.ts';

let bridge: TestBridge;
let credentials: string;
beforeAll(async () => {
  bridge = await startBridge();
  const organization = await bridge.newOrganization();
  const { apiKey } = await organization.newKey({ role: 'admin', userId: 'u1' });
  credentials = `X-Api-Key: ${apiKey}\r\nX-Platform-Organization-Id: ${organization.id}\r\n`;
});
afterAll(async () => {
  await bridge.close();
});

/** Sends the start of a request, perhaps with a part of its body, and waits only for the head of the response. */
async function send(line: string, headers: string, body: string | Buffer = ''): Promise<string> {
  const socket = connect(Number(new URL(bridge.url).port), '127.0.0.1');
  try {
    socket.write(`${line} HTTP/1.1\r\nHost: x\r\n${credentials}${headers}\r\n`);
    socket.write(body);
    const [head] = (await once(socket, 'data')) as [Buffer];
    return String(head);
  } finally {
    socket.destroy();
  }
}

const put = 'PUT /api/profile/';
const overwrite = 'PUT /api/profile/username/denylist/';
const json = 'Content-Type: application/json\r\n';
const multipart = 'Content-Type: multipart/form-data; boundary=x\r\n';

describe('a body that is too large is refused as soon as that is known, not at its end', () => {
  const spaces = ' '.repeat(100_000);
  const picture = 'x'.repeat(8 * 1024 * 1024);
  const part = '--x\r\nContent-Disposition: form-data; name="a"; filename="a.png"\r\n\r\n';
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
  test.each([
    ['announced, JSON', put, `${json}Content-Length: 1000000000\r\n`, '{'],
    ['announced, compressed', put, `${json}Content-Encoding: gzip\r\nContent-Length: 1000000000\r\n`, 'x'],
    ['announced, a list', overwrite, `${json}Content-Length: 1000000000\r\n`, '['],
    ['announced, a picture', put, `${multipart}Content-Length: 1000000000\r\n`, part],
    ['in chunks, JSON', put, `${json}Transfer-Encoding: chunked\r\n`, chunk(spaces)],
    ['in chunks, a picture', put, `${multipart}Transfer-Encoding: chunked\r\n`, chunk(part + picture)],
  ])('%s', async (_name, line, headers, body) => {
    expect(await send(line, headers, body)).toMatch(/^HTTP\/1\.1 413 /);
  });
});

test.each([
  ['JSON', put, json, 'invalid-json'],
  ['a picture', put, multipart, 'invalid-multipart'],
  ['a list', overwrite, json, 'invalid-json'],
  ['no type at all', put, '', 'invalid-json'],
])('no body where %s is announced is 400, whatever its framing', async (_name, line, type, code) => {
  for (const framing of ['', 'Content-Length: 0\r\n', 'Transfer-Encoding: chunked\r\n']) {
    if (type === '' && framing.startsWith('T')) continue;
    const answer = await send(line, type + framing, framing.startsWith('T') ? '0\r\n\r\n' : '');
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain(`"code":"${code}"`);
  }
});

describe('a compressed body', () => {
  const text = JSON.stringify({ username: 'ada' });
  const bomb = gzipSync(`"${'a'.repeat(50_000_000)}"`);
  test.each([
    ['gzip', gzipSync(text), 200],
    ['GZIP', gzipSync(text), 200],
    ['x-gzip', gzipSync(text), 200],
    ['deflate', deflateSync(text), 200],
    ['br', brotliCompressSync(text), 200],
    ['identity', Buffer.from(text), 200],
    ['', Buffer.from(text), 200],
    ['compress', Buffer.from(text), 415],
    ['gzip, a part of it missing', gzipSync(text).subarray(0, -9), 400],
    ['gzip, but it is not', Buffer.from(text), 400],
    ['gzip, and 50 MB when decompressed', bomb, 413],
  ])('%s', async (encoding, body, status) => {
    const headers = `Content-Encoding: ${encoding.split(',')[0]}\r\nContent-Length: ${body.length}\r\n`;
    expect(await send(put, json + headers, body)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });
});

test('an unknown expectation is ignored, and the request is answered like any other', async () => {
  const answer = await send(put, `${json}Expect: banana\r\nContent-Length: 2\r\n`, '{}');
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(answer).toMatch(/^deprecation: @/im);
});
