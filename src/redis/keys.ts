import { hash } from 'node:crypto';

/** The ids of all organizations. README.md beside this file has the table of all keys. */
export const organizationsKey = (prefix: string): string => `${prefix}orgs`;

/** The version of the layout (layout.ts). */
export const layoutKey = (prefix: string): string => `${prefix}layout`;

/** The key on which permissions are checked. */
export const permissionsKey = (prefix: string): string => `${prefix}permissions`;

/** The mode of the cut-over, the switch under way, and the registrations of all instances (lua/lib/cutover.lua). */
export const cutoverKey = (prefix: string): string => `${prefix}cutover`;

/**
 * What all keys of an organization begin with. The braces make it their hash tag, so that they share one slot;
 * the id is percent-encoded, so that none can break out of its tag or meet another.
 */
export const organizationBase = (prefix: string, organizationId: string): string =>
  `${prefix}{${encodeId(organizationId)}}:`;

/** The organization whose keys begin with this; undefined if there is none. */
export function organizationOf(prefix: string, base: string): string | undefined {
  const encoded = /^\{([^{}]*)\}:$/.exec(base.slice(prefix.length))?.[1];
  try {
    const id = decodeURIComponent(encoded ?? '');
    return organizationBase(prefix, id) === base ? id : undefined;
  } catch {
    return undefined;
  }
}

export const settingsKey = (base: string): string => `${base}settings`;

/** The only form in which an API key is stored or looked up: the SHA-256 of its UTF-8 bytes, in lower-case hex. */
export function hashApiKey(apiKey: string | Buffer): string {
  return hash('sha256', apiKey, 'hex');
}

/** The record of one API key. */
export const apiKeyKey = (base: string, sha256: string): string => `${base}key:${sha256}`;

/** Public id → SHA-256, of all keys of the organization. */
export const apiKeyIdsKey = (base: string): string => `${base}keys`;

export const profileKey = (base: string, userId: string): string => `${base}p:${userId}`;

/** A part of a generation of the name index (lua/lib/names.lua). */
export const namesBucketKey = (base: string, index: string, bucket: string): string =>
  `${base}n${index}:${bucket}`;

/** A generation of the denylist. */
export const denylistKey = (base: string, index: string): string => `${base}d${index}`;

/** The owner of the rebuild of the name index in progress; it expires. */
export const rebuildKey = (base: string): string => `${base}reindex`;

/** What was written here, so that a migration leaves it alone (lua/lib/local_writes.lua). */
export const localWritesKey = (base: string): string => `${base}local-writes`;

/** Form, or '' for the whole denylist → the number of the cut-over under which it was written here. */
export const denylistWritesKey = (base: string): string => `${base}denylist-writes`;

/** Renames of a migration that were begun and not all made yet (lua/migration/rename.lua): user → [old, new] in JSON. */
export const pendingRenamesKey = (base: string): string => `${base}renames`;

/**
 * Exists while a migration loads the organization, which itself does not exist until that is done: the name of the run,
 * line feed, the number of the cut-over under which it loads.
 */
export const loadingKey = (base: string): string => `${base}loading`;

export const objectsKey = (base: string): string => `${base}objects`;
export const collectionKey = (base: string, userId: string): string => `${base}c:${userId}`;
export const auditKey = (base: string): string => `${base}audit`;

/** Picture files that are pending or orphaned, with the time since when (media/lifecycle.ts). */
export const unreferencedPicturesKey = (base: string): string => `${base}media`;

/** The results of comparing with the legacy service: counts by name (cutover/compare/). */
export const comparisonsKey = (base: string): string => `${base}cutover:comparisons`;

/** User → the fields in which the last comparison found a difference, and when, in JSON. */
export const differingUsersKey = (base: string): string => `${base}cutover:differing`;

/** SHA-256 of API keys that the legacy service accepts and Redis does not have → who used them last, in JSON. */
export const unmappedKeysKey = (base: string): string => `${base}cutover:unmapped-keys`;

/** SHA-256 of API keys that Redis accepts and the legacy service does not → who used them last, in JSON. */
export const refusedKeysKey = (base: string): string => `${base}cutover:refused-keys`;

/** Changes that were forwarded and not adopted yet, by user; '' is the denylist (lua/lib/adoptions.lua). */
export const unsettledKey = (base: string): string => `${base}cutover:unsettled`;

/** User → why a change that the legacy service accepted could not be adopted, and when, in JSON. */
export const failedAdoptionsKey = (base: string): string => `${base}cutover:failed-adoptions`;

/** Users whose name the legacy service shows for another user → form and that user (lua/lib/adoptions.lua). */
export const lostNamesKey = (base: string): string => `${base}cutover:lost-names`;

/** Why something may be missing here → how often, and when first and last, in JSON (cutover/compare/findings.ts). */
export const gapsKey = (base: string): string => `${base}cutover:gaps`;

/** Accepted changes that wait to be replayed to the legacy service (lua/lib/replay.lua). */
export const replayKey = (base: string): string => `${base}cutover:replay`;

/** Changes whose replay the legacy service refused, by their id, in JSON. */
export const replayAsideKey = (base: string): string => `${base}cutover:replay-aside`;

/** The names of a denylist overwrite, in parts of JSON, until it has been replayed. */
export const replayListKey = (base: string, list: string): string => `${base}cutover:replay-list:${list}`;

/** The number under which the organization has to be on the list of those with waiting changes (lua/lib/replay.lua). */
export const replayListingKey = (base: string): string => `${base}cutover:replay-listing`;

/** The organizations in which changes may wait for their replay → the number of their listing. */
export const replayWaitingKey = (prefix: string): string => `${prefix}cutover:replay-waiting`;

/** Exists until all organizations are to be looked at again for waiting changes that the list lacks. */
export const replayLookKey = (prefix: string): string => `${prefix}cutover:replay-look`;

/** Which instance replays changes; it expires. */
export const replayerKey = (prefix: string): string => `${prefix}cutover:replayer`;

/** Why the replay pauses, for status; it expires. */
export const replayPauseKey = (prefix: string): string => `${prefix}cutover:replay-pause`;

/** What the key that encrypts waiting API keys is derived and checked with (src/cutover/replay/credentials.ts). */
export const replaySecretKey = (prefix: string): string => `${prefix}cutover:replay-secret`;

/** How many pictures are shown where legacy data has them, and when they were counted: "count ms". */
export const legacyPicturesKey = (prefix: string): string => `${prefix}cutover:legacy-pictures`;

/** Exists until they are to be counted again. */
export const legacyPicturesDueKey = (prefix: string): string => `${prefix}cutover:legacy-pictures-due`;

/** The organizations of requests that were forwarded, among them those that Redis does not know. */
export const forwardedOrganizationsKey = (prefix: string): string => `${prefix}cutover:organizations`;

/** Exists until the next sweep of orphaned pictures is due. */
export const sweepKey = (prefix: string): string => `${prefix}sweep`;

/** The failed authentications of a client address; expires with the period that they are counted in. */
export const authFailuresKey = (prefix: string, network: string): string =>
  `${prefix}auth-failures:${network}`;

function encodeId(id: string): string {
  return encodeURIComponent(id).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
