import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readConfig } from '../../../src/config.ts';
import { createReleasers, type Releasers } from '../../../src/lib/releasers.ts';
import { createLog } from '../../../src/log.ts';
import { openStore } from '../../../src/redis/connection/open.ts';
import { startRedis, unusedPort, type RedisProcess } from '../../support/redis.ts';
import { script } from '../../../src/redis/connection/script-loader.ts';

const authenticate = script<(string | number)[], unknown>('api_key/authenticate');

const log = createLog('error');
let folder: string;
let redis: RedisProcess;
let url: string;
let releasers: Releasers;
const file = (name: string): string => join(folder, name);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'secrets-'));
  releasers = createReleasers();
  makeCertificate();
  writeFileSync(file('password'), 'from a file\n');
  // ACL files split at blanks: such a password is given by its hash.
  writeFileSync(
    file('users.acl'),
    `user default off\nuser bridge on #${hash('sha256', 'from a file')} ~pb:* +@all -@dangerous +info\n`,
  );
  const port = await unusedPort();
  redis = await startRedis([
    '--tls-port',
    String(port),
    '--tls-cert-file',
    file('cert.pem'),
    '--tls-key-file',
    file('key.pem'),
    '--tls-ca-cert-file',
    file('cert.pem'),
    '--aclfile',
    file('users.acl'),
  ]);
  url = `rediss://bridge@127.0.0.1:${port}`;
});
afterAll(async () => {
  await releasers.close();
  await redis.stop();
  rmSync(folder, { recursive: true });
});

function makeCertificate(): void {
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=test',
      '-addext',
      'subjectAltName=IP:127.0.0.1',
      '-keyout',
      file('key.pem'),
      '-out',
      file('cert.pem'),
    ],
    { stdio: 'ignore' },
  );
}

test('opens a store behind TLS with a client certificate, an ACL user and a password from a file', async () => {
  const { store } = await openStore(
    {
      redisUrl: url,
      dataDir: folder,
      allowEviction: false,
      keyPrefix: 'pb:',
      writeReplicas: 0,
      redisSecrets: readConfig({
        REDIS_CA_FILE: file('cert.pem'),
        REDIS_CERT_FILE: file('cert.pem'),
        REDIS_KEY_FILE: file('key.pem'),
        REDIS_PASSWORD_FILE: file('password'),
      }).redisSecrets,
    },
    releasers,
    log,
  );
  expect(await store.acl('WHOAMI')).toBe('bridge');
  // What the scripts touch is all that this user may touch.
  expect(await authenticate(store, 'pb:{demo}:', 'no such key')).toEqual({ kind: 'unknown' });
  await expect(store.get('another:key')).rejects.toThrow(/NOPERM/);
});
