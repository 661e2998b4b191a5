import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readCutover } from '../../../src/cutover/switch/registry.ts';
import { cutoverKey, profileKey } from '../../../src/redis/keys.ts';
import { startBridge, type TestBridge, type TestOrganization } from '../../support/bridge.ts';
import type { Client } from '../../support/requests/client.ts';
import { until } from '../../support/until.ts';

/* An instance without LEGACY_BASE_URL that was wrongly assumed to have ended while the mode left native. */

let bridge: TestBridge;
let organization: TestOrganization;
let player: Client;
beforeAll(async () => {
  bridge = await startBridge();
  const { store, config } = bridge;
  organization = await bridge.newOrganization();
  player = await organization.player('ada');
  expect((await put('Ada')).status).toBe(200);
  // As the switch leaves it.
  await store.hset(cutoverKey(config.keyPrefix), { mode: 'shadow', epoch: 1, since: Date.now(), by: 'test' });
  await until(async () => (await readCutover(store, config.keyPrefix)).instances[0]?.epoch === 1);
});
afterAll(() => bridge.close());

const put = async (username: string) => await player.request('PUT', '/api/profile/', { json: { username } });

test('a bridge without LEGACY_BASE_URL makes no change that belongs to the legacy service', async () => {
  const { status, body } = await put('Eve');
  expect([status, body]).toMatchObject([503, { code: 'store-unavailable' }]);
  expect(await bridge.store.hget(profileKey(organization.base, 'ada'), 'u')).toBe('Ada');
});

test('a bridge without LEGACY_BASE_URL answers no read, since the legacy service may know better', async () => {
  const { status, body } = await player.request('GET', '/api/profile/');
  expect([status, body]).toMatchObject([503, { code: 'store-unavailable' }]);
});

test.each(['GET', 'PUT'])(
  'a bridge without LEGACY_BASE_URL does not judge a key that Redis lacks, for %s either',
  async (method) => {
    const headers = {
      'x-api-key': 'lost',
      'x-platform-organization-id': organization.id,
      'content-type': 'application/json',
    };
    const request = { method, headers, ...(method === 'PUT' && { body: '{}' }) };
    const response = await fetch(`${bridge.url}/api/profile/`, request);
    expect([response.status, await response.json()]).toMatchObject([503, { code: 'store-unavailable' }]);
  },
);

test('a bridge without LEGACY_BASE_URL says in /readyz why requests fail', async () => {
  const response = await fetch(`${bridge.url}/readyz`);
  expect([response.status, await response.json()]).toEqual([
    200,
    { status: 'degraded', degraded: ['authority-unknown'] },
  ]);
});
