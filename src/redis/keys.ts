/** Where a key stands outside every organization; README.md beside this file has the table of all keys. */
export function organizationsKey(prefix: string): string {
  return `${prefix}orgs`;
}

/** The version of the layout (layout/). */
export function layoutKey(prefix: string): string {
  return `${prefix}layout`;
}

/** What the check of permissions tries its commands on. */
export function permissionsKey(prefix: string): string {
  return `${prefix}permissions`;
}

/** The mode of the cut-over, the switch under way, and the registrations of all instances (lua/lib/cutover.lua). */
export function cutoverKey(prefix: string): string {
  return `${prefix}cutover`;
}

/**
 * What all keys of an organization begin with. The braces make it their hash tag, so that they share one slot;
 * the id is percent-encoded, so that none can break out of its tag or meet another.
 */
export function organizationBase(prefix: string, organizationId: string): string {
  return `${prefix}{${encodeId(organizationId)}}:`;
}

/** The organization whose keys begin with this; undefined where none's do. */
export function organizationOf(prefix: string, base: string): string | undefined {
  const encoded = /^\{([^{}]*)\}:$/.exec(base.slice(prefix.length))?.[1];
  try {
    const id = decodeURIComponent(encoded ?? '');
    return organizationBase(prefix, id) === base ? id : undefined;
  } catch {
    return undefined;
  }
}

export function settingsKey(base: string): string {
  return `${base}settings`;
}

/** The record of one API key. */
export function apiKeyKey(base: string, sha256: string): string {
  return `${base}key:${sha256}`;
}

/** Public id → SHA-256, of all keys of the organization. */
export function apiKeyIdsKey(base: string): string {
  return `${base}keys`;
}

export function profileKey(base: string, userId: string): string {
  return `${base}p:${userId}`;
}

/** A part of a generation of the name index (lua/lib/names.lua). */
export function namesBucketKey(base: string, index: string, bucket: string): string {
  return `${base}n${index}:${bucket}`;
}

/** A generation of the denylist. */
export function denylistKey(base: string, index: string): string {
  return `${base}d${index}`;
}

/** Whose rebuild of the name index is under way; it expires. */
export function rebuildKey(base: string): string {
  return `${base}reindex`;
}

/** What was written here, so that a migration leaves it alone (lua/lib/local_writes.lua). */
export function localWritesKey(base: string): string {
  return `${base}local-writes`;
}

/** Renames of a migration that were begun and not all made yet (lua/migration/rename.lua): user → [old, new] in JSON. */
export function pendingRenamesKey(base: string): string {
  return `${base}renames`;
}

/**
 * There while a migration loads the organization, which does not exist before that is done: the name of the run, line
 * feed, the number of the cut-over under which it loads.
 */
export function loadingKey(base: string): string {
  return `${base}loading`;
}

export function objectsKey(base: string): string {
  return `${base}objects`;
}

export function collectionKey(base: string, userId: string): string {
  return `${base}c:${userId}`;
}

export function auditKey(base: string): string {
  return `${base}audit`;
}

/** Picture files that are pending or orphaned, with the time since when (media/lifecycle.ts). */
export function unreferencedPicturesKey(base: string): string {
  return `${base}media`;
}

/** What comparing with the legacy service found: counts, by name (cutover/compare/). */
export function comparisonsKey(base: string): string {
  return `${base}cutover:comparisons`;
}

/** User → the fields in which the last comparison found a difference, and when, in JSON. */
export function differingUsersKey(base: string): string {
  return `${base}cutover:differing`;
}

/** SHA-256 of API keys that the legacy service accepts and Redis does not have → who used them last, in JSON. */
export function unmappedKeysKey(base: string): string {
  return `${base}cutover:unmapped-keys`;
}

/** SHA-256 of API keys that Redis accepts and the legacy service does not → who used them last, in JSON. */
export function refusedKeysKey(base: string): string {
  return `${base}cutover:refused-keys`;
}

/** Numbers of adoptions, and when a denylist change was last adopted (lua/lib/adoptions.lua). */
export function adoptionsKey(base: string): string {
  return `${base}cutover:adoptions`;
}

/** Changes that were forwarded and not adopted yet, by user; '' is the denylist (lua/lib/adoptions.lua). */
export function unsettledKey(base: string): string {
  return `${base}cutover:unsettled`;
}

/** Users whose name the legacy service shows for another user → form and that user (lua/lib/adoptions.lua). */
export function lostNamesKey(base: string): string {
  return `${base}cutover:lost-names`;
}

/** What may be missing here → how often, first and last when, in JSON (cutover/compare/findings.ts). */
export function gapsKey(base: string): string {
  return `${base}cutover:gaps`;
}

/** Accepted changes that wait to be replayed to the legacy service (lua/lib/replay.lua). */
export function replayKey(base: string): string {
  return `${base}cutover:replay`;
}

/** Changes whose replay the legacy service refused, by their id, in JSON. */
export function replayAsideKey(base: string): string {
  return `${base}cutover:replay-aside`;
}

/** The names of a denylist overwrite, in parts of JSON, until it has been replayed. */
export function replayListKey(base: string, list: string): string {
  return `${base}cutover:replay-list:${list}`;
}

/** Which instance replays changes; it expires. */
export function replayerKey(prefix: string): string {
  return `${prefix}cutover:replayer`;
}

/** Why the replay pauses, for status; it expires. */
export function replayPauseKey(prefix: string): string {
  return `${prefix}cutover:replay-pause`;
}

/** What the key that encrypts waiting API keys is derived and checked with (src/cutover/replay/credentials.ts). */
export function replaySecretKey(prefix: string): string {
  return `${prefix}cutover:replay-secret`;
}

/** The organizations of requests that were forwarded, among them those that Redis does not know. */
export function forwardedOrganizationsKey(prefix: string): string {
  return `${prefix}cutover:organizations`;
}

/** Exists until the next sweep of orphaned pictures is due. */
export function sweepKey(prefix: string): string {
  return `${prefix}sweep`;
}

/** The failed authentications of a client address; expires with the period that they are counted in. */
export function authFailuresKey(prefix: string, network: string): string {
  return `${prefix}auth-failures:${network}`;
}

function encodeId(id: string): string {
  return encodeURIComponent(id).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
