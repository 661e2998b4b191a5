import { hourMs } from '../../lib/days.ts';
import { authenticate } from '../../redis/api-keys/callers.ts';
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
import type { AdoptionFailure, Gap } from './findings.ts';
import { comparedFields, type ComparedField } from './fields.ts';
import { storeTime, type RedisClient } from '../../redis/connection/client.ts';

/** An API key that the two services judge differently; `fingerprint` begins its SHA-256. */
interface DisputedKey {
  fingerprint: string;
  userAgent: string;
  /** When it was used last, ms since 1970. */
  lastSeen: number;
}

/** The comparisons of one hour. */
interface ComparedHour {
  /** When it began, ms since 1970. */
  from: number;
  compared: number;
  different: number;
}

/** What comparing found in one organization. */
export interface ComparisonSummary {
  organizationId: string;
  /** From when on the mode holds that the comparisons were made in, ms since 1970; 0 where there were none. */
  since: number;
  compared: number;
  different: number;
  /** Responses that were no profile. */
  unreadable: number;
  /** How often each field differed. */
  fields: Partial<Record<ComparedField, number>>;
  /** The comparisons of each UTC hour of the last two days in which there were any, the latest last. */
  hours: ComparedHour[];
  /** Users whose last comparison differed, and some of them. */
  differingUsers: number;
  examples: { userId: string; fields: ComparedField[]; at: number }[];
  /** Keys that the legacy service accepts and Redis does not have. */
  unmappedKeys: DisputedKey[];
  /** Keys that Redis accepts and the legacy service refuses. */
  refusedKeys: DisputedKey[];
  /** Users with a change that was forwarded some seconds ago and not adopted yet, and whether the denylist has one. */
  unsettledUsers: number;
  isDenylistUnsettled: boolean;
  /** Some of these users. */
  unsettledExamples: string[];
  /** Users, and the denylist, with a change that was forwarded and not adopted yet, those just under way included. */
  unadopted: number;
  /** Users with a change that could not be adopted, and some of them; times in ms since 1970. */
  failedAdoptions: number;
  adoptionFailures: { userId: string; reason: AdoptionFailure; at: number }[];
  /** Users whose name the legacy service shows for another user. */
  lostNames: number;
  /** Why something may be missing here; times in ms since 1970. */
  gaps: { reason: Gap; count: number; first: number; last: number }[];
}

const mostExamples = 10;

/** How long a change is usually under way at most, from being forwarded to being adopted, in ms. */
const usualDuration = 5000;
/** More marks than changes can be under way: then most of them have been left behind. */
const mostUnderWay = 2000;

/** What comparing has found, by organization; those in which nothing was compared or disputed are left out. */
export async function readComparisons(store: RedisClient, prefix: string): Promise<ComparisonSummary[]> {
  const organizations = await store.smembers(forwardedOrganizationsKey(prefix));
  const summaries: ComparisonSummary[] = [];
  for (const id of organizations.sort()) summaries.push(await readOne(store, prefix, id));
  return summaries;
}

async function readOne(
  store: RedisClient,
  prefix: string,
  organizationId: string,
): Promise<ComparisonSummary> {
  const base = organizationBase(prefix, organizationId);
  const [counts, differingUsers, examples, unmapped, refused, unadopted, failed, failures, lostNames, gaps] =
    await Promise.all([
      store.hgetall(comparisonsKey(base)),
      store.hlen(differingUsersKey(base)),
      examplesIn<Omit<ComparisonSummary['examples'][number], 'userId'>>(store, differingUsersKey(base)),
      store.hgetall(unmappedKeysKey(base)),
      store.hgetall(refusedKeysKey(base)),
      store.hlen(unsettledKey(base)),
      store.hlen(failedAdoptionsKey(base)),
      examplesIn<{ reason: AdoptionFailure; at: number }>(store, failedAdoptionsKey(base)),
      store.hlen(lostNamesKey(base)),
      store.hgetall(gapsKey(base)),
    ]);
  const count = (name: string): number => Number(counts[name] ?? 0);
  const fields: ComparisonSummary['fields'] = {};
  for (const field of comparedFields)
    if (count(`field:${field}`) > 0) fields[field] = count(`field:${field}`);
  return {
    organizationId,
    since: count('since'),
    compared: count('same') + count('different'),
    different: count('different'),
    unreadable: count('unreadable'),
    fields,
    hours: hoursIn(counts),
    differingUsers,
    examples,
    ...(await readUnsettled(store, base, unadopted)),
    unadopted,
    failedAdoptions: failed,
    adoptionFailures: failures,
    lostNames,
    gaps: Object.entries(gaps).map(([reason, gap]) => ({
      reason: reason as Gap,
      ...(JSON.parse(gap) as { count: number; first: number; last: number }),
    })),
    unmappedKeys: await stillDisputed(
      unmapped,
      async (sha256) => (await store.exists(apiKeyKey(base, sha256))) === 0,
    ),
    refusedKeys: await stillDisputed(
      refused,
      async (sha256) => (await authenticate(store, base, sha256)).kind === 'known',
    ),
  };
}

/** The fields `hour:<hours since 1970>:<same or different>`. */
function hoursIn(counts: Record<string, string>): ComparedHour[] {
  const hours = new Map<number, ComparedHour>();
  for (const [name, count] of Object.entries(counts)) {
    const [, hour, kind] = /^hour:(\d+):(\w+)$/.exec(name) ?? [];
    if (hour === undefined) continue;
    const from = Number(hour) * hourMs;
    const found = hours.get(from) ?? { from, compared: 0, different: 0 };
    found.compared += Number(count);
    if (kind === 'different') found.different += Number(count);
    hours.set(from, found);
  }
  return [...hours.values()].toSorted((one, other) => one.from - other.from);
}

/** Whose changes have been on their way for so long that they may never be adopted. */
async function readUnsettled(
  store: RedisClient,
  base: string,
  unadopted: number,
): Promise<Pick<ComparisonSummary, 'unsettledUsers' | 'isDenylistUnsettled' | 'unsettledExamples'>> {
  const key = unsettledKey(base);
  if (unadopted > mostUnderWay) {
    const onDenylist = await store.hexists(key, '');
    const [, some] = await store.hscan(key, 0, 'COUNT', mostExamples);
    const users = some.filter((user, at) => at % 2 === 0 && user !== '').slice(0, mostExamples);
    return {
      unsettledUsers: unadopted - onDenylist,
      isDenylistUnsettled: onDenylist === 1,
      unsettledExamples: users,
    };
  }
  const marks = await store.hgetall(key);
  const before = (await storeTime(store)) - usualDuration;
  const { '': onDenylist = '', ...ofUsers } = marks;
  const isUnsettled = (of: string): boolean =>
    of !== '' && of.split(' ').some((mark) => Number(mark.split(':')[2] ?? 0) < before);
  const users = Object.keys(ofUsers).filter((user) => isUnsettled(ofUsers[user] ?? ''));
  return {
    unsettledUsers: users.length,
    isDenylistUnsettled: isUnsettled(onDenylist),
    unsettledExamples: users.slice(0, mostExamples),
  };
}

/** Some of the users who are on record. */
async function examplesIn<Entry>(store: RedisClient, key: string): Promise<({ userId: string } & Entry)[]> {
  const [, entries] = await store.hscan(key, 0, 'COUNT', mostExamples);
  const examples: ({ userId: string } & Entry)[] = [];
  for (let at = 0; at + 1 < entries.length && examples.length < mostExamples; at += 2) {
    examples.push({ userId: entries[at] ?? '', ...(JSON.parse(entries[at + 1] ?? '{}') as Entry) });
  }
  return examples;
}

/** A key may have been imported, or revoked, since it was used. */
async function stillDisputed(
  entries: Record<string, string>,
  holds: (sha256: string) => Promise<boolean>,
): Promise<DisputedKey[]> {
  const disputed: DisputedKey[] = [];
  for (const [sha256, entry] of Object.entries(entries)) {
    if (!(await holds(sha256))) continue;
    const { userAgent, at } = JSON.parse(entry) as { userAgent: string; at: number };
    disputed.push({ fingerprint: sha256.slice(0, 12), userAgent, lastSeen: at });
  }
  return disputed;
}
