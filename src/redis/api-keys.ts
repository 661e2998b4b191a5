import { randomBytes } from 'node:crypto';
import type { Caller } from '../domain/caller.ts';
import { hashApiKey } from './credentials.ts';
import { apiKeyIdsKey, apiKeyKey } from './keys.ts';
import type { Store } from './scripts.ts';

/** What an API key is made for. `expiresAt` in ms. */
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

export type CreateKeyOutcome =
  { kind: 'created'; apiKey: string; keyId: string } | { kind: 'unknown-organization' };

/** A new public id: it tells nothing of the key. */
export function newKeyId(): string {
  return `k_${randomBytes(8).toString('hex')}`;
}

/** Makes a key of 256 random bits and stores its SHA-256; only the caller ever sees the key itself. */
export async function createApiKey(store: Store, base: string, key: NewApiKey): Promise<CreateKeyOutcome> {
  const apiKey = `pb_${randomBytes(32).toString('base64url')}`;
  const keyId = newKeyId();
  const outcome = await store.createKey(
    base,
    hashApiKey(apiKey),
    keyId,
    key.role,
    key.userId ?? '',
    key.client ?? '',
    key.expiresAt === undefined ? '' : String(key.expiresAt),
  );
  if (outcome === 'unknown-organization') return { kind: outcome };
  if (outcome === 'exists') throw new Error('256 random bits came twice');
  return { kind: 'created', apiKey, keyId };
}

/** Revokes a key by its public id, for every instance and from its next request on. */
export async function revokeApiKey(
  store: Store,
  base: string,
  keyId: string,
): Promise<'revoked' | 'unknown'> {
  return await store.revokeKey(base, keyId);
}

/** All keys of an organization, revoked and expired ones too, oldest first. */
export async function listApiKeys(store: Store, base: string): Promise<ApiKeyRecord[]> {
  const records: ApiKeyRecord[] = [];
  for await (const page of store.hscanStream(apiKeyIdsKey(base), { count: 500 }) as AsyncIterable<string[]>) {
    const hashes = page.filter((_, position) => position % 2 === 1);
    records.push(...(await Promise.all(hashes.map((sha256) => readRecord(store, base, sha256)))));
  }
  const byId = new Map(records.map((record) => [record.keyId, record]));
  return [...byId.values()].toSorted((a, b) => a.createdAt - b.createdAt || (a.keyId < b.keyId ? -1 : 1));
}

async function readRecord(store: Store, base: string, sha256: string): Promise<ApiKeyRecord> {
  const { i, r, u, c, e, x, t } = await store.hgetall(apiKeyKey(base, sha256));
  return {
    keyId: i ?? '',
    role: r === 'admin' ? 'admin' : 'player',
    userId: u,
    client: c,
    expiresAt: e === undefined ? undefined : Number(e),
    createdAt: Number(t ?? 0),
    revokedAt: x === undefined ? undefined : Number(x),
  };
}
