import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  createApiKey,
  listApiKeys,
  revokeApiKey,
  type NewApiKey,
} from '../../../src/redis/operator/api-keys.ts';
import { hashApiKey } from '../../../src/redis/keys.ts';
import { authenticate } from '../../../src/redis/changes.ts';
import { scanKeys } from '../../../src/redis/connection/scan.ts';
import { newOrganization } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();
let base: string;
beforeEach(async () => {
  ({ base } = await newOrganization(store));
});

const create = (key: NewApiKey) => createApiKey(store, base, key);

describe('an API key', () => {
  test('authenticates the user it was made for', async () => {
    const { apiKey, keyId } = await create({ role: 'player', userId: 'ada', client: 'ios-4.2' });
    expect(apiKey).toMatch(/^pb_[\w-]{43}$/);
    expect(await authenticate(store, base, hashApiKey(apiKey))).toMatchObject({
      kind: 'known',
      caller: { keyId, role: 'player', userId: 'ada', client: 'ios-4.2' },
    });
  });

  test('is nowhere in the store, only its SHA-256', async () => {
    const { apiKey } = await create({ role: 'admin' });
    const texts: string[] = [];
    for await (const keys of scanKeys(store, base)) {
      for (const key of keys) texts.push(key, (await store.dump(key)) ?? '');
    }
    expect(texts.join('\n')).toContain(hashApiKey(apiKey));
    expect(texts.join('\n')).not.toContain(apiKey.slice(3));
  });

  test('is refused once it is revoked, and can be revoked twice', async () => {
    const { apiKey, keyId } = await create({ role: 'admin' });
    expect(await revokeApiKey(store, base, keyId)).toBe('revoked');
    expect(await authenticate(store, base, hashApiKey(apiKey))).toEqual({ kind: 'unknown' });
    const [before] = await listApiKeys(store, base);
    expect(await revokeApiKey(store, base, keyId)).toBe('already');
    expect(await listApiKeys(store, base)).toEqual([before]);
  });

  test('is refused from the very millisecond at which it expires', async () => {
    const [seconds, microseconds] = await store.time();
    const now = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
    const { apiKey } = await create({ role: 'admin', expiresAt: now });
    expect(await authenticate(store, base, hashApiKey(apiKey))).toEqual({ kind: 'unknown' });
    const later = await create({ role: 'admin', expiresAt: now + 60_000 });
    expect(await authenticate(store, base, hashApiKey(later.apiKey))).toMatchObject({ kind: 'known' });
  });

  test('with a role that is unknown is that of a player', async () => {
    const { apiKey, keyId } = await create({ role: 'admin' });
    await store.hset(`${base}key:${hashApiKey(apiKey)}`, 'r', 'root');
    expect(await authenticate(store, base, hashApiKey(apiKey))).toMatchObject({
      caller: { keyId, role: 'player' },
    });
  });

  test('counts as made here, so that no migration changes it', async () => {
    const { apiKey } = await create({ role: 'admin' });
    expect(await store.hget(`${base}key:${hashApiKey(apiKey)}`, 'b')).toBe('1');
  });

  test('cannot be revoked if it is unknown', async () => {
    expect(await revokeApiKey(store, base, 'k_0000000000000000')).toBe('unknown');
    await store.hset(`${base}keys`, 'k_lost', hashApiKey('lost'));
    expect(await revokeApiKey(store, base, 'k_lost')).toBe('unknown');
    expect(await store.exists(`${base}key:${hashApiKey('lost')}`)).toBe(0);
  });
});

test('keys are listed oldest first, with all that is known of them but the key', async () => {
  const expiresAt = Date.now() + 60_000;
  const first = await create({ role: 'player', userId: 'ada', client: 'ios', expiresAt });
  const second = await create({ role: 'admin' });
  const [one, two, ...rest] = await listApiKeys(store, base);
  expect(rest).toEqual([]);
  // Both may have been made in one millisecond.
  expect(new Set([one?.keyId, two?.keyId])).toEqual(new Set([first.keyId, second.keyId]));
  const listed = one?.keyId === first.keyId ? one : two;
  expect(listed).toMatchObject({ role: 'player', userId: 'ada', client: 'ios', expiresAt });
  expect(listed?.createdAt).toBeGreaterThan(Date.now() - 60_000);
  expect(listed?.revokedAt).toBeUndefined();
});
