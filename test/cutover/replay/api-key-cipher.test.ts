import { beforeEach, describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import {
  createApiKeyCipher,
  openApiKeyCipher,
  type ApiKeyCipher,
} from '../../../src/cutover/replay/api-key-cipher.ts';
import type { QueuedCaller } from '../../../src/cutover/replay/queue/changes.ts';
import { joinCutover } from '../../../src/cutover/switch/instance.ts';
import { cutoverHeartbeat, newRegistration } from '../../../src/cutover/switch/registry.ts';
import { cutoverKey, replaySecretKey } from '../../../src/redis/keys.ts';
import { freshPrefix } from '../../support/redis.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();
let prefix: string;
beforeEach(() => {
  prefix = freshPrefix();
});

const [first, second, third] = ['first', 'second', 'third'].map((word) => word.repeat(10)) as [
  string,
  string,
  string,
];
const ada: QueuedCaller = { organizationId: 'acme', keyId: 'k1', role: 'player', userId: 'ada' };

async function able(secret: string, previous?: string): Promise<ApiKeyCipher> {
  const ability = await openApiKeyCipher(store, prefix, { secret, previous });
  if (ability.kind === 'unable') throw new Error(ability.reason);
  return ability.cipher;
}

/** Registers an instance that can replay, as a bridge does after it has opened its cipher. */
async function join() {
  return await joinCutover(store, { keyPrefix: prefix, kind: 'bridge', legacy: true, replay: true });
}

describe('a sealed API key', () => {
  const cipher = createApiKeyCipher([randomBytes(32)]);

  test('opens for its caller, whatever its bytes', () => {
    const byte = fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code));
    const text = fc.string();
    fc.assert(
      fc.property(
        fc.string({ unit: byte }),
        text,
        text,
        fc.option(text),
        (apiKey, organizationId, keyId, user) => {
          const caller: QueuedCaller = {
            organizationId,
            keyId,
            role: 'admin',
            ...(user !== null && { userId: user }),
          };
          expect(cipher.open({ caller, sealedKey: cipher.seal(caller, apiKey) })).toBe(apiKey);
        },
      ),
    );
  });

  test.each<[string, Partial<QueuedCaller>]>([
    ['another organization', { organizationId: 'other' }],
    ['another key', { keyId: 'k2' }],
    ['another role', { role: 'admin' }],
    ['another user', { userId: 'eve' }],
  ])('does not open for %s', (_, change) => {
    const sealedKey = cipher.seal(ada, 'secret');
    expect(cipher.open({ caller: { ...ada, ...change }, sealedKey })).toBeUndefined();
  });

  test('does not open once any bit of it is changed, or a part of it is missing', () => {
    const sealed = Buffer.from(cipher.seal(ada, 'secret'), 'base64');
    for (let bit = 0; bit < sealed.length * 8; bit += 1) {
      const changed = Buffer.from(sealed);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(cipher.open({ caller: ada, sealedKey: changed.toString('base64') })).toBeUndefined();
    }
    for (let size = 0; size < sealed.length; size += 1) {
      const part = sealed.subarray(0, size).toString('base64');
      expect(cipher.open({ caller: ada, sealedKey: part })).toBeUndefined();
    }
  });

  test('never looks the same twice, and does not contain the key', () => {
    const sealed = cipher.seal(ada, 'secret');
    expect(cipher.seal(ada, 'secret')).not.toBe(sealed);
    expect(Buffer.from(sealed, 'base64').toString('latin1')).not.toContain('secret');
  });
});

describe('the secret', () => {
  test('is needed to replay', async () => {
    const ability = await openApiKeyCipher(store, prefix, { secret: undefined });
    expect(ability).toEqual({ kind: 'unable', reason: 'REPLAY_SECRET is not set' });
    expect(await store.exists(replaySecretKey(prefix))).toBe(0);
  });

  test('is the same for all instances, which open what others have sealed', async () => {
    const sealedKey = (await able(first)).seal(ada, 'secret');
    expect((await able(first)).open({ caller: ada, sealedKey })).toBe('secret');
  });

  test('is refused where another instance uses a different one', async () => {
    await able(first);
    const other = await join();
    expect(await openApiKeyCipher(store, prefix, { secret: second })).toMatchObject({ kind: 'unable' });
    await other.close();
    await able(second);
  });

  test('may differ from that of an instance that was killed, while no change can wait', async () => {
    await able(first);
    const { id, registration } = newRegistration({ kind: 'bridge', legacy: true, replay: true });
    const killed = JSON.stringify({ ...registration, started: '1' });
    await cutoverHeartbeat(store, cutoverKey(prefix), id, killed, 0, 0, '-', 'none');
    await able(second);
  });

  test('is refused where changes may wait that were sealed with a different one', async () => {
    await able(first);
    await store.hset(cutoverKey(prefix), { mode: 'reverse', epoch: 1, since: 1, by: 'test' });
    expect(await openApiKeyCipher(store, prefix, { secret: second })).toMatchObject({ kind: 'unable' });
  });

  test('can be changed while changes wait: what was sealed with the one before opens', async () => {
    const sealedKey = (await able(first)).seal(ada, 'secret');
    await store.hset(cutoverKey(prefix), { mode: 'reverse', epoch: 1, since: 1, by: 'test' });
    const changed = await able(second, first);
    expect(changed.open({ caller: ada, sealedKey })).toBe('secret');

    const sealedLater = changed.seal(ada, 'secret');
    expect((await able(second)).open({ caller: ada, sealedKey: sealedLater })).toBe('secret');
    expect((await able(second)).open({ caller: ada, sealedKey })).toBeUndefined();
    const ability = await openApiKeyCipher(store, prefix, { secret: third, previous: first });
    expect(ability).toMatchObject({ kind: 'unable' });
  });

  test('is not in Redis', async () => {
    await able(first);
    expect(JSON.stringify(await store.hgetall(replaySecretKey(prefix)))).not.toContain('first');
  });
});

test('an instance that cannot replay does not start in the mode reverse', async () => {
  await store.hset(cutoverKey(prefix), { mode: 'reverse', epoch: 1, since: 1, by: 'test' });
  const start = joinCutover(store, { keyPrefix: prefix, kind: 'bridge', legacy: true, replay: false });
  await expect(start).rejects.toThrow('REPLAY_SECRET');
  const other = await join();
  expect(other.mode()).toBe('reverse');
  await other.close();
});
