import { hash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { readConfig } from '../../src/config.ts';
import { createReleasers } from '../../src/lib/releasers.ts';
import { createLog } from '../../src/log.ts';
import { openStore } from '../../src/redis/open.ts';
import { startRedis, unusedPort, type RedisProcess } from '../support/redis.ts';
import { describeWithOpenssl, makeCertificate } from '../support/servers/certificate.ts';
import { script } from '../../src/redis/connection/script-loader.ts';

const authenticate = script<(string | number)[], unknown>('api_key/authenticate');

describeWithOpenssl('a store behind TLS with a client certificate and an ACL user', () => {
  const releasers = createReleasers();
  let folder: string;
  let redis: RedisProcess;
  afterAll(async () => {
    await releasers.close();
    await redis.stop();
    rmSync(folder, { recursive: true });
  });

  test('is opened with a password from a file', async () => {
    folder = mkdtempSync(join(tmpdir(), 'secrets-'));
    const file = (name: string, content: string): string => {
      writeFileSync(join(folder, name), content);
      return join(folder, name);
    };
    const { cert, key } = makeCertificate(folder);
    const password = file('password', 'from a file\n');
    // ACL files split at blanks: such a password is given by its hash.
    const rights = '~pb:* +@all -@dangerous +info';
    const users = `user default off\nuser bridge on #${hash('sha256', 'from a file')} ${rights}\n`;
    const port = await unusedPort();
    const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert];
    redis = await startRedis(['--tls-port', String(port), ...files, '--aclfile', file('users.acl', users)]);

    const redisUrl = `rediss://bridge@127.0.0.1:${port}`;
    const { redisSecrets } = readConfig({
      REDIS_URL: redisUrl,
      REDIS_CA_FILE: cert,
      REDIS_CERT_FILE: cert,
      REDIS_KEY_FILE: key,
      REDIS_PASSWORD_FILE: password,
    });
    const config = { redisUrl, redisSecrets, dataDir: folder, allowEviction: false, writeReplicas: 0 };
    const { store } = await openStore({ ...config, keyPrefix: 'pb:' }, releasers, createLog('error'));
    expect(await store.acl('WHOAMI')).toBe('bridge');
    // What the scripts touch is all that this user may touch.
    expect(await authenticate(store, 'pb:{demo}:', 'no such key')).toEqual({ kind: 'unknown' });
    await expect(store.get('another:key')).rejects.toThrow(/NOPERM/);
  });
});
