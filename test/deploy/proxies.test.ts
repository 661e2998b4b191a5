import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import sharp from 'sharp';
import { startBridge, type TestBridge } from '../support/bridge.ts';
import { describeWith } from '../support/servers/describe-with.ts';
import { unusedPort } from '../support/redis.ts';
import { startServer } from '../support/servers/private-server.ts';

const hostname = 'profiles.example.com';

function programAt(path: string): string | undefined {
  return existsSync(path) ? path : undefined;
}

/** Writes a proxy's configuration with the ports and the certificate of a test; its path. */
function configure(
  folder: string,
  file: string,
  replacements: readonly (readonly [string | RegExp, string])[],
): string {
  const example = readFileSync(`scripts/deploy/${file}`, 'utf8');
  const configuration = replacements.reduce((configured, [from, to]) => {
    expect(configured).toMatch(from);
    return configured.replace(from, to);
  }, example);
  const path = join(folder, file);
  writeFileSync(path, configuration);
  return path;
}

interface Proxy {
  name: string;
  program: string | undefined;
  /** How the program is started, so that it listens on the port in front of these bridges. */
  start: (port: number, bridges: readonly [TestBridge, TestBridge]) => Promise<() => Promise<void>>;
}

const nginx = programAt('/usr/sbin/nginx');
const haproxy = programAt('/usr/sbin/haproxy');

const proxies: readonly Proxy[] = [
  {
    name: 'nginx',
    program: nginx,
    start: async (port, [one, other]) => {
      const folder = certificateFolder('nginx');
      const site = configure(folder, 'nginx.conf', [
        ['listen 443 ssl', `listen 127.0.0.1:${port} ssl`],
        ['server 127.0.0.1:8080;', `server ${hostOf(one)}; server ${hostOf(other)};`],
        ['/etc/ssl/profiles.example.com/fullchain.pem', join(folder, 'cert.pem')],
        ['/etc/ssl/profiles.example.com/privkey.pem', join(folder, 'key.pem')],
      ]);
      const user = process.getuid?.() === 0 ? 'user root;' : '';
      const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (kind) => `${kind}_temp_path ${folder}/${kind};`,
      );
      writeFileSync(
        join(folder, 'main.conf'),
        `${user} pid ${folder}/nginx.pid; daemon off; error_log stderr notice; events {}
         http { access_log off; ${paths.join(' ')} include ${site}; }`,
      );
      return await startServer({
        command: nginx ?? '',
        args: ['-c', join(folder, 'main.conf')],
        account: undefined,
        folder,
        ready: /start worker process \d/,
        signal: 'SIGTERM',
      });
    },
  },
  {
    name: 'HAProxy',
    program: haproxy,
    start: async (port, [one, other]) => {
      const folder = certificateFolder('haproxy');
      const file = configure(folder, 'haproxy.cfg', [
        ['bind :443', `bind 127.0.0.1:${port}`],
        ['/etc/haproxy/profiles.example.com.pem', join(folder, 'both.pem')],
        ['10.0.0.1:8080', hostOf(one)],
        ['10.0.0.2:8080', hostOf(other)],
        ...(process.getuid?.() === 0 ? [] : [[/user haproxy\n *group haproxy/, ''] as const]),
      ]);
      return await startServer({
        command: haproxy ?? '',
        args: ['-W', '-db', '-f', file],
        account: undefined,
        folder,
        ready: /Loading success/,
        signal: 'SIGTERM',
      });
    },
  },
];

function hostOf({ url }: TestBridge): string {
  return new URL(url).host;
}

function certificateFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`));
  const files = ['-keyout', join(folder, 'key.pem'), '-out', join(folder, 'cert.pem')];
  const subject = ['-subj', `/CN=${hostname}`, '-addext', `subjectAltName=DNS:${hostname}`];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...subject, ...files], {
    stdio: 'ignore',
  });
  const parts = ['cert.pem', 'key.pem'].map((file) => readFileSync(join(folder, file), 'utf8'));
  writeFileSync(join(folder, 'both.pem'), parts.join(''));
  return folder;
}

for (const proxy of proxies) {
  describeWith(proxy.program, 'not installed')(`${proxy.name}, as scripts/deploy configures it`, () => {
    let bridges: [TestBridge, TestBridge];
    let port: number;
    let stop: () => Promise<void>;
    let credentials: Record<string, string>;
    beforeAll(async () => {
      const first = await startBridge();
      const { keyPrefix } = first.config;
      bridges = [first, await startBridge({ keyPrefix, dataDir: first.config.dataDir })];
      const organization = await first.newOrganization();
      const { apiKey } = await organization.newKey({ role: 'player', userId: 'u1' });
      credentials = { 'x-api-key': apiKey, 'x-platform-organization-id': organization.id };
      port = await unusedPort();
      stop = await proxy.start(port, bridges);
    });
    afterAll(async () => {
      await stop();
      for (const bridge of bridges) await bridge.close();
    });

    const send = (
      method: string,
      headers: Record<string, string>,
      body?: Buffer,
    ): Promise<{ status: number | undefined; body: string }> =>
      new Promise((resolve, reject) => {
        const options = { host: '127.0.0.1', port, servername: hostname, rejectUnauthorized: false };
        let isAnswered = false;
        const sent = request(
          { ...options, method, path: '/api/profile/', headers: { host: hostname, ...headers } },
          (response) => {
            isAnswered = true;
            text(response).then((answer) => resolve({ status: response.statusCode, body: answer }), reject);
          },
        );
        // A server may answer and close the connection before it has read the whole body.
        sent.on('error', (error) => {
          if (!isAnswered) reject(error);
        });
        sent.end(body);
      });

    /** A multipart body with a file of so many bytes. */
    const upload = (file: Buffer): { type: string; body: Buffer } => ({
      type: 'multipart/form-data; boundary=boundary',
      body: Buffer.concat([
        Buffer.from(
          '--boundary\r\nContent-Disposition: form-data; name="profilePicture"; filename="a.png"\r\n\r\n',
        ),
        file,
        Buffer.from('\r\n--boundary--\r\n'),
      ]),
    });

    test('profiles are read and written, and pictures uploaded', async () => {
      const noise = { type: 'gaussian', mean: 128, sigma: 60 } as const;
      const picture = await sharp({
        create: { width: 1000, height: 1000, channels: 3, background: 'white', noise },
      })
        .png({ compressionLevel: 0 })
        .toBuffer();
      expect(picture.length).toBeGreaterThan(2_000_000);
      const { type, body } = upload(picture);
      const put = await send('PUT', { ...credentials, 'content-type': type }, body);
      expect(put).toMatchObject({ status: 200, body: expect.stringContaining('"profilePictureUrl"') });
      const json = { ...credentials, 'content-type': 'application/json' };
      expect((await send('PUT', json, Buffer.from('{"username":"ada"}'))).status).toBe(200);
      expect(await send('GET', credentials)).toMatchObject({
        status: 200,
        body: expect.stringContaining('"username":"ada"'),
      });
    });

    test('a request that is refused before its body was read gets the answer of the bridge', async () => {
      const { type, body } = upload(Buffer.alloc(4_000_000));
      const tooLarge = upload(Buffer.alloc(6_000_000));
      const wrongKey = { ...credentials, 'x-api-key': 'wrong', 'content-type': type };
      const statuses: (number | undefined)[] = [];
      for (let times = 0; times < 20; times++) {
        statuses.push((await send('PUT', wrongKey, body)).status);
        statuses.push((await send('PUT', { ...credentials, 'content-type': type }, tooLarge.body)).status);
      }
      expect(statuses).toEqual(Array.from({ length: 20 }, () => [401, 413]).flat());
    });

    test('two Host headers are refused', async () => {
      const socket = connect({ host: '127.0.0.1', port, servername: hostname, rejectUnauthorized: false });
      socket.write(`GET /api/profile/ HTTP/1.1\r\nHost: ${hostname}\r\nHost: other\r\n\r\n`);
      expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /);
    });

    test('no request fails while one of two bridges shuts down', async () => {
      const statuses: (number | undefined)[] = [];
      const closed = new AbortController();
      const closing = bridges[1].close().then(() => closed.abort());
      while (!closed.signal.aborted || statuses.length < 100)
        statuses.push((await send('GET', credentials)).status);
      await closing;
      expect(statuses.filter((status) => status !== 200)).toEqual([]);
    });
  });
}
