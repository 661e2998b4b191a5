import { createCipheriv, createDecipheriv, createHmac, randomBytes, scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import type { RedisClient } from '../../redis/connection/client.ts';
import { replaySecretKey } from '../../redis/keys.ts';
import { readCutover, removeEnded } from '../switch/registry.ts';
import type { QueuedCaller, QueuedChange } from './queue/changes.ts';

export interface ReplaySecrets {
  /** REPLAY_SECRET */
  secret: string | undefined;
  /** REPLAY_SECRET_PREVIOUS: opens what was sealed before the secret was changed. */
  previous?: string | undefined;
}

/** Whether this instance can replay changes, and if not, why and what to do about it. */
export type ReplayAbility = { kind: 'able'; cipher: ApiKeyCipher } | { kind: 'unable'; reason: string };

/** AES-256-GCM with nonces of 96 bits (NIST SP 800-38D §5.2.1.1). */
const algorithm = 'aes-256-gcm';
const sizes = { fingerprint: 8, nonce: 12, tag: 16, key: 32, salt: 16 };

/** RFC 7914; 32 MiB and about a tenth of a second, once at start. */
const cost = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1024 * 1024 };
const derive = promisify<string, Buffer, number, typeof cost, Buffer>(scrypt);

/**
 * Compares the secret with the check value that the other instances left in Redis. If it differs, it replaces that one
 * where REPLAY_SECRET_PREVIOUS matches it, or where nothing sealed with it can be waiting.
 */
export async function openApiKeyCipher(
  store: RedisClient,
  prefix: string,
  { secret, previous }: ReplaySecrets,
): Promise<ReplayAbility> {
  if (secret === undefined) return { kind: 'unable', reason: 'REPLAY_SECRET is not set' };
  const stored = replaySecretKey(prefix);
  // Written only if it is not there: where Redis is full, an instance can still start, and replay what waits.
  const firstStored = async (field: string, value: string): Promise<string | null> => {
    const found = await store.hget(stored, field);
    if (found !== null) return found;
    await store.hsetnx(stored, field, value);
    return await store.hget(stored, field);
  };
  const newSalt = randomBytes(sizes.salt).toString('base64');
  const salt = Buffer.from((await firstStored('salt', newSalt)) ?? '', 'base64');
  const deriveKey = async (from: string): Promise<Buffer> => await derive(from, salt, sizes.key, cost);
  const current = await deriveKey(secret);
  const keys = previous === undefined ? [current] : [current, await deriveKey(previous)];

  const check = await firstStored('check', fingerprint(current));
  if (check !== fingerprint(current)) {
    if (!keys.some((key) => fingerprint(key) === check) && (await isInUse(store, prefix))) {
      return {
        kind: 'unable',
        reason:
          'REPLAY_SECRET differs from that of the other instances: set the same one or, to change it, also set REPLAY_SECRET_PREVIOUS to the previous one',
      };
    }
    await store.hset(stored, 'check', fingerprint(current));
  }
  return { kind: 'able', cipher: createApiKeyCipher(keys) };
}

/** Encrypts the API keys of changes that wait for their replay: the legacy service requires the caller's own. */
export type ApiKeyCipher = ReturnType<typeof createApiKeyCipher>;

/** Seals with the first of these keys, and opens with any. */
export function createApiKeyCipher(keys: readonly Buffer[]) {
  const [current] = keys;
  if (current === undefined) throw new TypeError('there must be a key');
  const byFingerprint = new Map(keys.map((key) => [fingerprint(key), key]));
  const ownFingerprint = Buffer.from(fingerprint(current), 'hex');
  return {
    /** The key (the bytes of its header, in Latin-1), which can only be decrypted together with its owner. */
    seal: (caller: QueuedCaller, apiKey: string): string => {
      const nonce = randomBytes(sizes.nonce);
      const sealing = createCipheriv(algorithm, current, nonce, { authTagLength: sizes.tag });
      sealing.setAAD(associatedData(caller));
      const sealed = Buffer.concat([sealing.update(apiKey, 'latin1'), sealing.final()]);
      return Buffer.concat([ownFingerprint, nonce, sealing.getAuthTag(), sealed]).toString('base64');
    },
    /** Undefined if it was sealed with another secret, is not that of this caller, or was removed. */
    open: ({ caller, sealedKey }: Pick<QueuedChange, 'caller' | 'sealedKey'>): string | undefined => {
      const bytes = Buffer.from(sealedKey, 'base64');
      let at = 0;
      const take = (size: number): Buffer => bytes.subarray(at, (at += size));
      const key = byFingerprint.get(take(sizes.fingerprint).toString('hex'));
      const nonce = take(sizes.nonce);
      const tag = take(sizes.tag);
      if (key === undefined || tag.length < sizes.tag) return undefined;
      const opening = createDecipheriv(algorithm, key, nonce, { authTagLength: sizes.tag });
      opening.setAAD(associatedData(caller));
      opening.setAuthTag(tag);
      try {
        return Buffer.concat([opening.update(bytes.subarray(at)), opening.final()]).toString('latin1');
      } catch {
        return undefined;
      }
    },
  };
}

/** The owner of the key: a ciphertext that was moved to another entry cannot be decrypted. */
function associatedData({ organizationId, keyId, role, userId }: QueuedCaller): Buffer {
  return Buffer.from(JSON.stringify([organizationId, keyId, role, userId ?? null]));
}

/** Distinguishes keys without revealing anything about them; in hex. */
function fingerprint(key: Buffer): string {
  const digest = createHmac('sha256', key).update('profile-bridge replay').digest();
  return digest.toString('hex', 0, sizes.fingerprint);
}

/** Whether changes may wait that were sealed with the secret known so far, or another instance seals with it. */
async function isInUse(store: RedisClient, prefix: string): Promise<boolean> {
  await removeEnded(store, prefix);
  const { mode, underWay, instances } = await readCutover(store, prefix);
  return (
    mode === 'reverse' ||
    underWay?.to === 'reverse' ||
    instances.some(({ kind, replay }) => kind === 'bridge' && replay)
  );
}
