import { hash } from 'node:crypto';

// How keys are spelled; README.md beside this file says what each one holds.

export const organizationsKey = (prefix: string): string => `${prefix}orgs`;
export const layoutKey = (prefix: string): string => `${prefix}layout`;
export const permissionsKey = (prefix: string): string => `${prefix}permissions`;
export const sweepKey = (prefix: string): string => `${prefix}sweep`;
export const authFailuresKey = (prefix: string, network: string): string =>
  `${prefix}auth-failures:${network}`;

export const cutoverKey = (prefix: string): string => `${prefix}cutover`;
export const forwardedOrganizationsKey = (prefix: string): string => `${prefix}cutover:organizations`;
export const legacyPicturesKey = (prefix: string): string => `${prefix}cutover:legacy-pictures`;
export const legacyPicturesDueKey = (prefix: string): string => `${prefix}cutover:legacy-pictures-due`;
export const replayOrganizationsKey = (prefix: string): string => `${prefix}cutover:replay-news`;
export const replayRestoreDueKey = (prefix: string): string => `${prefix}cutover:replay-look`;
export const replayerKey = (prefix: string): string => `${prefix}cutover:replayer`;
export const replayPauseKey = (prefix: string): string => `${prefix}cutover:replay-pause`;
export const replaySecretKey = (prefix: string): string => `${prefix}cutover:replay-secret`;

/**
 * What all keys of an organization begin with. The braces make it their hash tag, so that they share one slot;
 * the id is percent-encoded, so that none can break out of its tag or meet another.
 */
export const organizationBase = (prefix: string, organizationId: string): string =>
  `${prefix}{${encodeId(organizationId)}}:`;

/** The organization whose keys begin with this; undefined if there is none. */
export function organizationOf(prefix: string, base: string): string | undefined {
  const [, encoded] = /^\{([^{}]+)\}:$/.exec(base.slice(prefix.length)) ?? [];
  if (encoded === undefined) return undefined;
  try {
    const id = decodeURIComponent(encoded);
    return organizationBase(prefix, id) === base ? id : undefined;
  } catch {
    return undefined;
  }
}

function encodeId(id: string): string {
  return encodeURIComponent(id).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

export const settingsKey = (base: string): string => `${base}settings`;
export const auditKey = (base: string): string => `${base}audit`;
export const apiKeyKey = (base: string, sha256: string): string => `${base}key:${sha256}`;
export const apiKeyIdsKey = (base: string): string => `${base}keys`;
export const requestCountKey = (base: string, keyId: string): string => `${base}rate:${keyId}`;
export const objectsKey = (base: string): string => `${base}objects`;
export const collectionKey = (base: string, userId: string): string => `${base}c:${userId}`;
export const unreferencedPicturesKey = (base: string): string => `${base}media`;

export const profileKey = (base: string, userId: string): string => `${base}p:${userId}`;
export const namesBucketKey = (base: string, generation: string, bucket: string): string =>
  `${base}n${generation}:${bucket}`;
export const denylistKey = (base: string, generation: string): string => `${base}d${generation}`;

/** The generation of an organization's names or denied names that a key is part of; undefined for any other key. */
export function generationOf(base: string, key: string): string | undefined {
  const [, ofNames, ofDenylist] = /^(?:n(\d+):\d+|d(\d+))$/.exec(key.slice(base.length)) ?? [];
  return ofNames ?? ofDenylist;
}

export const stageKey = (base: string): string => `${base}stage`;
export const stageOwnerKey = (base: string): string => `${base}stage-owner`;
export const rebuildKey = (base: string): string => `${base}reindex`;

export const localWritesKey = (base: string): string => `${base}local-writes`;
export const adoptionsKey = (base: string): string => `${base}cutover:adoptions`;
export const denylistWritesKey = (base: string): string => `${base}denylist-writes`;
export const pendingRenamesKey = (base: string): string => `${base}renames`;
export const claimsKey = (base: string): string => `${base}claims`;
export const loadingKey = (base: string): string => `${base}loading`;

/** What the keys of the cut-over begin with. */
export const cutoverKeys = (base: string): string => `${base}cutover:`;
export const comparisonsKey = (base: string): string => `${base}cutover:comparisons`;
export const differingUsersKey = (base: string): string => `${base}cutover:differing`;
export const unmappedKeysKey = (base: string): string => `${base}cutover:unmapped-keys`;
export const refusedKeysKey = (base: string): string => `${base}cutover:refused-keys`;
export const unsettledKey = (base: string): string => `${base}cutover:unsettled`;
export const failedAdoptionsKey = (base: string): string => `${base}cutover:failed-adoptions`;
export const denylistChangeKey = (base: string): string => `${base}cutover:denylist-change`;
export const lostNamesKey = (base: string): string => `${base}cutover:lost-names`;
export const gapsKey = (base: string): string => `${base}cutover:gaps`;
export const replayKey = (base: string): string => `${base}cutover:replay`;
export const replaySendersKey = (base: string): string => `${base}cutover:replay-senders`;
export const replayAsideKey = (base: string): string => `${base}cutover:replay-aside`;
export const replayListKey = (base: string, list: string): string => `${base}cutover:replay-list:${list}`;

/** The only form in which an API key is stored or looked up: the SHA-256 of its UTF-8 bytes, in lower-case hex. */
export function hashApiKey(apiKey: string | Buffer): string {
  return hash('sha256', apiKey);
}

/** Hexadecimal digits of a name's hash. */
export const nameHashLength = 8;

/** The hash of a normalized name, as in lua/lib/names.lua: its lowest bits tell the bucket. */
export function nameHash(normalized: string): string {
  return hash('sha1', normalized).slice(0, nameHashLength);
}

/** The number of the bucket for a name's hash, of this many buckets (linear hashing). */
export function bucketOf(hexHash: string, count: number): number {
  const bits = Number.parseInt(hexHash, 16);
  // Below the power of two that is not below the count.
  const mask = count === 1 ? 0 : 0xffffffff >>> Math.clz32(count - 1);
  const number = bits & mask;
  return number < count ? number : bits & (mask >>> 1);
}
