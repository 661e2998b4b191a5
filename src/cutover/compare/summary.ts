import { hourMs } from '../../lib/days.ts';
import { getOrInsert } from '../../lib/collections/get-or-insert.ts';
import { yieldingChunks } from '../../lib/time-slices.ts';
import { pairsOf } from '../../lib/collections/pairs.ts';
import { authenticate } from '../../redis/changes.ts';
import {
  apiKeyKey,
  comparisonsKey,
  differingUsersKey,
  failedAdoptionsKey,
  forwardedOrganizationsKey,
  gapsKey,
  lostNamesKey,
  organizationBase,
  refusedKeysKey,
  unmappedKeysKey,
  unsettledKey,
} from '../../redis/keys.ts';
import type { AdoptionFailure, Gap, KeyEntry } from './pending.ts';
import { comparedFields, type ComparedField } from './compare.ts';
import { storeTime, type RedisClient } from '../../redis/connection/client.ts';

/** What comparing found in one organization; times in ms since 1970. */
export type ComparisonSummary = Awaited<ReturnType<typeof readOne>>;

const maxExamples = 10;
const organizationsAtOnce = 100;

/** How long it usually takes at most from forwarding a change to adopting it, in ms. */
const expectedDuration = 5000;
/** More marks than there can be changes in progress: most of them must have been left behind. */
const maxInProgress = 2000;

/** What comparing has found, by organization; those in which nothing was compared or disputed are left out. */
export async function readComparisons(store: RedisClient, prefix: string): Promise<ComparisonSummary[]> {
  return await ofForwarded(store, prefix, (organizationId) => readOne(store, prefix, organizationId));
}

/** What is in doubt, read as fast as possible: while a switch looks, changes wait. */
export async function readDoubts(store: RedisClient, prefix: string) {
  const found = await ofForwarded(store, prefix, async (organizationId) => {
    const base = organizationBase(prefix, organizationId);
    const [unadopted, gaps] = await Promise.all([store.hlen(unsettledKey(base)), readGaps(store, base)]);
    return { unadopted, lastGapAt: Math.max(0, ...gaps.map(({ last }) => last)) };
  });
  return {
    /** Users, and denylists, with a change that was forwarded and not adopted yet. */
    unadopted: found.reduce((sum, one) => sum + one.unadopted, 0),
    /** When a change was last forwarded that may be missing here for good, ms; 0 if none was. */
    lastGapAt: Math.max(0, ...found.map(({ lastGapAt }) => lastGapAt)),
  };
}

/** Reads something of every organization whose requests were forwarded. */
async function ofForwarded<Found>(
  store: RedisClient,
  prefix: string,
  read: (organizationId: string) => Promise<Found>,
): Promise<Found[]> {
  const organizations = await store.smembers(forwardedOrganizationsKey(prefix));
  const found: Found[] = [];
  for await (const some of yieldingChunks(organizations.sort(), organizationsAtOnce)) {
    found.push(...(await Promise.all(some.map(read))));
  }
  return found;
}

async function readGaps(store: RedisClient, base: string) {
  return Object.entries(await store.hgetall(gapsKey(base))).map(([reason, gap]) => ({
    reason: reason as Gap,
    ...(JSON.parse(gap) as { count: number; first: number; last: number }),
  }));
}

async function readOne(store: RedisClient, prefix: string, organizationId: string) {
  const base = organizationBase(prefix, organizationId);
  const [counts, gaps, unmapped, refused, differingUsers, examples, failedAdoptions, adoptionFailures] =
    await Promise.all([
      store.hgetall(comparisonsKey(base)),
      readGaps(store, base),
      store.hgetall(unmappedKeysKey(base)),
      store.hgetall(refusedKeysKey(base)),
      store.hlen(differingUsersKey(base)),
      examplesIn<{ fields: ComparedField[]; at: number }>(store, differingUsersKey(base)),
      store.hlen(failedAdoptionsKey(base)),
      examplesIn<{ reason: AdoptionFailure; at: number }>(store, failedAdoptionsKey(base)),
    ]);
  const acceptedThere = await stillDisputed(unmapped, (sha256, entry) =>
    findRefused(store, base, sha256, entry),
  );
  const count = (name: string): number => Number(counts[name] ?? 0);
  const fields: Partial<Record<ComparedField, number>> = {};
  for (const field of comparedFields)
    if (count(`field:${field}`) > 0) fields[field] = count(`field:${field}`);
  return {
    organizationId,
    /** Since when the mode in which the comparisons were made has been in force; 0 if there were none. */
    since: count('since'),
    compared: count('same') + count('different'),
    different: count('different'),
    /** Responses that were not a profile. */
    unreadable: count('unreadable'),
    fields,
    /** The comparisons of each UTC hour of the last two days in which there were any, the latest last. */
    hours: hoursIn(counts),
    /** Users whose last comparison differed, and some of them. */
    differingUsers,
    examples,
    ...(await readMarks(store, unsettledKey(base))),
    /** Users with a change that could not be adopted, and some of them. */
    failedAdoptions,
    adoptionFailures,
    /** Users whose name the legacy service shows for another user. */
    lostNames: await store.hlen(lostNamesKey(base)),
    gaps,
    /** Keys that the legacy service accepts and Redis does not have. */
    unmappedKeys: acceptedThere.flatMap(({ known, ...key }) => (known === undefined ? [key] : [])),
    /** Keys that the legacy service accepts, and Redis has and refuses, though they are not revoked. */
    unusableKeys: acceptedThere.flatMap(({ known, ...key }) =>
      known === undefined ? [] : [{ ...known, ...key }],
    ),
    /** Keys that Redis accepts and the legacy service refuses, with the public ids by which they can be revoked. */
    refusedKeys: await stillDisputed(refused, async (sha256, { isInSource = false }) => {
      const found = await authenticate(store, base, sha256);
      return found.kind === 'known' ? { keyId: found.caller.keyId, isInSource } : undefined;
    }),
  };
}

/** Why a key that the legacy service accepts would be refused here, other than on purpose. */
export type Unusable = 'expired' | 'no-user';

/** What is known here of a key that would be refused, if anything; undefined if it would not, or is to be. */
async function findRefused(
  store: RedisClient,
  base: string,
  sha256: string,
  { isForUser }: KeyEntry,
): Promise<{ known?: { keyId: string; reason: Unusable } } | undefined> {
  if ((await store.exists(apiKeyKey(base, sha256))) === 0) return {};
  const found = await authenticate(store, base, sha256);
  if (found.kind === 'known') {
    const { keyId, userId } = found.caller;
    return isForUser === true && userId === undefined ? { known: { keyId, reason: 'no-user' } } : undefined;
  }
  const [keyId, revokedAt] = await store.hmget(apiKeyKey(base, sha256), 'i', 'x');
  return keyId && !revokedAt ? { known: { keyId, reason: 'expired' } } : undefined;
}

/** The fields `hour:<hours since 1970>:<same or different>`. */
function hoursIn(counts: Record<string, string>) {
  const hours = new Map<number, { from: number; compared: number; different: number }>();
  for (const [name, count] of Object.entries(counts)) {
    const [, hour, kind] = /^hour:(\d+):(\w+)$/.exec(name) ?? [];
    if (hour === undefined) continue;
    const from = Number(hour) * hourMs;
    const found = getOrInsert(hours, from, () => ({ from, compared: 0, different: 0 }));
    found.compared += Number(count);
    if (kind === 'different') found.different += Number(count);
  }
  return [...hours.values()].sort((one, other) => one.from - other.from);
}

/** Changes that were forwarded and not adopted yet. */
async function readMarks(store: RedisClient, key: string) {
  const unadopted = await store.hlen(key);
  const isFlood = unadopted > maxInProgress;
  const [marks, onDenylist, now] = await Promise.all([
    isFlood ? someOf(store, key) : store.hgetall(key),
    store.hget(key, ''),
    storeTime(store),
  ]);
  const isUnsettled = (of: string): boolean =>
    isFlood || of.split(' ').some((mark) => Number(mark.split(':')[2] ?? 0) < now - expectedDuration);
  const users = Object.entries(marks).flatMap(([user, of]) => (user !== '' && isUnsettled(of) ? [user] : []));
  return {
    /** Users with a change that has been on its way for so long that it may never be adopted, and some of them. */
    unsettledUsers: isFlood ? unadopted - Number(onDenylist !== null) : users.length,
    unsettledExamples: users.slice(0, maxExamples),
    isDenylistUnsettled: onDenylist !== null && isUnsettled(onDenylist),
    /** Users, and the denylist, with any such change, those just under way included. */
    unadopted,
  };
}

async function examplesIn<Entry>(store: RedisClient, key: string): Promise<({ userId: string } & Entry)[]> {
  const some = Object.entries(await someOf(store, key)).slice(0, maxExamples);
  return some.map(([userId, entry]) => ({ userId, ...(JSON.parse(entry) as Entry) }));
}

async function someOf(store: RedisClient, key: string): Promise<Record<string, string>> {
  const [, found] = await store.hscan(key, 0, 'COUNT', maxExamples);
  return Object.fromEntries(pairsOf(found));
}

/**
 * API keys that are still judged differently: one may have been imported, or revoked, since it was used. `look` returns
 * what is known here of one that is, and else undefined.
 */
async function stillDisputed<Known extends object>(
  entries: Record<string, string>,
  look: (sha256: string, entry: KeyEntry) => Promise<Known | undefined>,
) {
  const disputed: (Known & { fingerprint: string; userAgent: string; lastSeen: number })[] = [];
  for (const [sha256, entry] of Object.entries(entries)) {
    const used = JSON.parse(entry) as KeyEntry;
    const known = await look(sha256, used);
    if (known === undefined) continue;
    const { userAgent, at } = used;
    disputed.push({ ...known, fingerprint: sha256.slice(0, 12), userAgent, lastSeen: at });
  }
  return disputed;
}
