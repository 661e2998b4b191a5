import { randomBytes } from 'node:crypto';
import type { Caller } from '../../domain/caller.ts';
import { apiKeyIdsKey, apiKeyKey, hashApiKey } from '../keys.ts';
import { scanPairs } from '../connection/scan.ts';
import type { RedisClient } from '../connection/client.ts';
import { script } from '../connection/script-loader.ts';

const create = script<string[], null>('api_key/create');

/** Revokes a key by its public id, for every instance and from its next request on; `already`: it was before. */
export const revokeApiKey = script<[keyId: string], 'revoked' | 'already' | 'unknown'>('api_key/revoke');

/** `expiresAt` in ms. */
export interface NewApiKey {
  role: Caller['role'];
  userId?: string | undefined;
  client?: string | undefined;
  expiresAt?: number | undefined;
}

/** A stored key, without the key. Times in ms. */
export interface ApiKeyRecord extends NewApiKey {
  keyId: string;
  createdAt: number;
  revokedAt?: number | undefined;
}

/** A new public id, which reveals nothing about the key. */
export function newKeyId(): string {
  return `k_${randomBytes(8).toString('hex')}`;
}

/** Creates a key of 256 random bits and stores its SHA-256; only the caller ever sees the key itself. */
export async function createApiKey(
  store: RedisClient,
  base: string,
  { role, userId, client, expiresAt }: NewApiKey,
): Promise<{ apiKey: string; keyId: string }> {
  const apiKey = `pb_${randomBytes(32).toString('base64url')}`;
  const keyId = newKeyId();
  const optional = [userId, client, expiresAt].map((value) => String(value ?? ''));
  await create(store, base, hashApiKey(apiKey), keyId, role, ...optional);
  return { apiKey, keyId };
}

/** All keys of an organization, revoked and expired ones too, oldest first. */
export async function listApiKeys(store: RedisClient, base: string): Promise<ApiKeyRecord[]> {
  const records = new Map<string, ApiKeyRecord>();
  for await (const page of scanPairs(store, apiKeyIdsKey(base))) {
    for (const record of await Promise.all(page.map((pair) => readRecord(store, base, pair)))) {
      if (record !== undefined) records.set(record.keyId, record);
    }
  }
  return [...records.values()].toSorted((a, b) => a.createdAt - b.createdAt || (a.keyId < b.keyId ? -1 : 1));
}

/** Undefined if the record is missing (fsck reports that). */
async function readRecord(
  store: RedisClient,
  base: string,
  [keyId, sha256]: readonly [string, string],
): Promise<ApiKeyRecord | undefined> {
  const { i, r, u, c, e, x, t } = await store.hgetall(apiKeyKey(base, sha256));
  if (i === undefined) return undefined;
  return {
    keyId,
    role: r === 'admin' ? 'admin' : 'player',
    userId: u,
    client: c,
    expiresAt: toTime(e),
    createdAt: toTime(t) ?? 0,
    revokedAt: toTime(x),
  };
}

/** 0 for what is not a time (fsck reports that). */
function toTime(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return /^\d{1,15}$/.test(text) ? Number(text) : 0;
}
