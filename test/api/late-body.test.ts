import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { ClientRequest } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { saveSettings } from '../../src/redis/organizations.ts';
import { startLegacyBridge, type LegacyBridge } from '../support/legacy/bridge.ts';
import { startBridge, type TestBridge, type TestOrganization } from '../support/bridge.ts';
import { startRedis, type RedisProcess } from '../support/redis.ts';
import { revokeApiKey } from '../../src/redis/operator/api-keys.ts';
import { beginPut, finishPut } from '../support/requests/late-put.ts';

let redis: RedisProcess;
let bridge: TestBridge;
let organization: TestOrganization;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

async function startAlone() {
  const alone = await startBridge({ redisUrl: redis.url });
  return { bridge: alone, organization: await alone.newOrganization(), close: alone.close };
}

const body = JSON.stringify({ username: 'grace' });

const begin = async (apiKey: string): Promise<ClientRequest> =>
  await beginPut({ bridge, organization }, apiKey, { 'content-length': body.length });
const finish = async (put: ClientRequest): Promise<number | undefined> => (await finishPut(put, body)).status;

describe.each<[string, () => Promise<Pick<LegacyBridge, 'bridge' | 'organization' | 'close'>>]>([
  ['alone', startAlone],
  ['with a legacy service', () => startLegacyBridge({ redisUrl: redis.url }, {}, 'native')],
])('a bridge %s', (_which, start) => {
  let close: () => Promise<void>;
  beforeAll(async () => {
    ({ bridge, organization, close } = await start());
  });
  afterAll(() => close());

  describe('a body that arrives after its headers', () => {
    test('is refused if its key was revoked meanwhile', async () => {
      const { apiKey, keyId } = await organization.newKey({ role: 'player', userId: 'revoked' });
      const put = await begin(apiKey);
      await revokeApiKey(bridge.store, organization.base, keyId);
      expect(await finish(put)).toBe(401);
    });

    test('is checked against the settings in force once it has arrived', async () => {
      const { apiKey } = await organization.newKey({ role: 'player', userId: 'restricted' });
      const put = await begin(apiKey);
      await saveSettings(bridge.store, bridge.config.keyPrefix, organization.id, { maxLength: 3 });
      expect(await finish(put)).toBe(422);
    });
  });

  test('a body that comes with its headers costs no second authentication', async () => {
    const { apiKey } = await organization.newKey({ role: 'player', userId: 'quick' });
    const sha256 = createHash('sha256').update(apiKey).digest('hex');
    const watcher = new Redis(redis.url);
    const monitor = await watcher.monitor();
    const seen: string[][] = [];
    monitor.on('monitor', (_time: string, parts: string[]) => seen.push(parts));
    try {
      const { hostname, port } = new URL(bridge.url);
      const socket = connect(Number(port), hostname);
      // Headers and body in one write.
      socket.write(
        [
          'PUT /api/profile/ HTTP/1.1',
          'Host: bridge',
          `x-api-key: ${apiKey}`,
          `x-platform-organization-id: ${organization.id}`,
          'content-type: application/json',
          'content-length: 2',
          'connection: close',
          '',
          '{}',
        ].join('\r\n'),
      );
      const [response] = (await once(socket, 'data')) as [Buffer];
      expect(String(response)).toMatch(/^HTTP\/1\.1 200 /);
      await bridge.store.get('last');
      while (!seen.some((parts) => parts.includes('last'))) await once(monitor, 'monitor');
      expect(seen.filter((parts) => /^eval/i.test(parts[0] ?? '') && parts.includes(sha256))).toHaveLength(1);
    } finally {
      monitor.disconnect();
      watcher.disconnect();
    }
  });
});
