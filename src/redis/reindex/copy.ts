import { normalizedName, type UsernameComparison } from '../../domain/usernames.ts';
import { totalOf } from '../../lib/numbers.ts';
import { inBatches } from '../../lib/collections/batches.ts';
import {
  adoptionsKey,
  denylistKey,
  denylistWritesKey,
  localWritesKey,
  namesBucketKey,
  profileKey,
  settingsKey,
} from '../keys.ts';
import { scanMembers, scanPairs } from '../connection/scan.ts';
import { readWriteSnapshot } from '../changes.ts';
import type { RedisClient } from '../connection/client.ts';
import { script } from '../connection/script-loader.ts';

const addToRebuild = script<
  [token: string, step: number, leaseMs: number, next: string, kind: string, ...pairs: string[]],
  ['lapsed'] | ['added', others: [position: number, there: string][]]
>('reindex/add');

/** A rebuild of one organization's name index in progress: see reindex.ts. */
export interface Rebuild {
  store: RedisClient;
  base: string;
  token: string;
  /** How many parts were added: Redis adds each only if it has the one before. */
  step: number;
  /** ms */
  lease: number;
  /** The new comparison. */
  comparison: UsernameComparison;
  /** The generation in force, and the one being built. */
  current: string;
  next: string;
  /** How many buckets the generation in force has. */
  buckets: number;
  signal: AbortSignal | undefined;
}

interface Name {
  userId: string;
  username: string;
}

/** Users whose names would be the same. */
export type Collision = Name[];

type Stopped = { kind: 'lapsed' | 'interrupted' | 'inconsistent' };
type Copied = { kind: 'copied'; count: number };
type Collided = { kind: 'collisions'; collisions: Collision[]; isComplete: boolean };

/** Buckets read at once: some 300 names, for a script call of a few milliseconds. */
const bucketsAtOnce = 8;
/** Denied names in one script call. */
const deniedAtOnce = 300;
/** An operator needs the first few, and memory stays flat. */
const reportedCollisions = 1000;

/** Adds a part to the next generation: names, and what there is of each; `others` are those that it has already. */
async function add(
  rebuild: Rebuild,
  kind: 'names' | 'denied' | 'marks' | 'adopted',
  part: readonly (readonly [what: string, name: string])[],
) {
  const { store, base, token, lease, next, comparison, signal } = rebuild;
  if (signal?.aborted === true) return { kind: 'interrupted' as const };
  const pairs = part.map(([what, name]) => [what, normalizedName(name, comparison)]);
  const reply = await addToRebuild(store, base, token, rebuild.step++, lease, next, kind, ...pairs.flat());
  return reply[0] === 'added' ? { kind: reply[0], others: reply[1] } : { kind: reply[0] };
}

/** Copies the names to the next generation, normalized by the new comparison. */
export async function copyNames(rebuild: Rebuild): Promise<Copied | Stopped | Collided> {
  const { base, current, buckets, comparison } = rebuild;
  const collisions = new Map<string, Collision>();
  let isComplete = true;
  let count = 0;
  for (const keys of inBatches(bucketKeys(base, current, buckets), { size: bucketsAtOnce })) {
    const names = await readNames(rebuild, keys);
    if (names === undefined) return { kind: 'inconsistent' };
    const part = names.map(({ userId, username }) => [userId, username] as const);
    const added = await add(rebuild, 'names', part);
    if (added.kind !== 'added') return added;
    count += names.length;
    for (const [position, holder] of added.others) {
      const { userId = '', username = '' } = names[position] ?? {};
      // The index has the name twice.
      if (holder === userId) return { kind: 'inconsistent' };
      const normalized = normalizedName(username, comparison);
      const group = collisions.get(normalized) ?? [
        { userId: holder, username: await usernameOf(rebuild, holder) },
      ];
      if (group.length > 1 || collisions.size < reportedCollisions) collisions.set(normalized, group);
      else isComplete = false;
      group.push({ userId, username });
    }
  }
  if (collisions.size > 0) return { kind: 'collisions', collisions: [...collisions.values()], isComplete };
  return (await countNames(rebuild)) === count ? { kind: 'copied', count } : { kind: 'inconsistent' };
}

function* bucketKeys(base: string, generation: string, buckets: number): Generator<string> {
  for (let number = 0; number < buckets; number++) yield namesBucketKey(base, generation, String(number));
}

/** The names in some buckets of the generation in force; undefined if a profile does not have its name. */
async function readNames(rebuild: Rebuild, keys: readonly string[]): Promise<Name[] | undefined> {
  const { store, base } = rebuild;
  const read = await Promise.all(keys.map((key) => store.hgetall(key)));
  const snapshot = await readWriteSnapshot(store, base);
  const names = await Promise.all(
    read.flatMap(Object.entries<string>).map(async ([normalized, userId]) => {
      const username = await usernameOf(rebuild, userId);
      return normalizedName(username, snapshot.settings.comparison) === normalized
        ? { userId, username }
        : undefined;
    }),
  );
  return names.every((name) => name !== undefined) ? names : undefined;
}

async function usernameOf({ store, base }: Rebuild, userId: string): Promise<string> {
  return (await store.hget(profileKey(base, userId), 'u')) ?? '';
}

/** How many names the next generation has, counted in its own buckets: another program may have removed some. */
async function countNames(rebuild: Rebuild): Promise<number> {
  const { store, base, next } = rebuild;
  const buckets = Number(await store.hget(settingsKey(base), `n${next}`));
  let count = 0;
  for (const keys of inBatches(bucketKeys(base, next, buckets), { size: 500 })) {
    const lengths = await Promise.all(keys.map((key) => store.hlen(key)));
    count += totalOf(lengths);
    // Renews the lease. If it has lapsed, the switch to the new generation is refused.
    await add(rebuild, 'names', []);
  }
  return count;
}

/** Copies the denylist to the next generation; spellings that become the same name become one entry. */
export function copyDenied(rebuild: Rebuild): Promise<Copied | Stopped> {
  const denied = scanPairs(rebuild.store, denylistKey(rebuild.base, rebuild.current));
  return copyPairs(rebuild, 'denied', denied, ([normalized, given]) => {
    const name = given === '' ? normalized : given;
    return [name, name];
  });
}

/** Marks of names that were denied or removed here are also set for the names as the new comparison has them. */
export function copyDenylistWrites(rebuild: Rebuild): Promise<Copied | Stopped> {
  return copyMarks(rebuild, 'marks', denylistWrites(rebuild.store, rebuild.base));
}

/** The same for the marks of denied names whose change was adopted (lua/lib/adoptions.lua). */
export function copyAdoptedNames(rebuild: Rebuild): Promise<Copied | Stopped> {
  return copyMarks(rebuild, 'adopted', adoptedNames(rebuild.store, rebuild.base));
}

function copyMarks(rebuild: Rebuild, kind: 'marks' | 'adopted', marks: Pages): Promise<Copied | Stopped> {
  return copyPairs(rebuild, kind, withSpellings(rebuild, marks), ([name, mark]) => [mark, name]);
}

/** Names, some at a time, with what there is of each. */
type Pages = ReturnType<typeof scanPairs>;

async function copyPairs(
  rebuild: Rebuild,
  kind: 'denied' | 'marks' | 'adopted',
  pages: Pages,
  parse: (entry: readonly [field: string, value: string]) => [what: string, name: string],
): Promise<Copied | Stopped> {
  let count = 0;
  for await (const page of pages) {
    // Also without any, which renews the lease.
    for (let at = 0; at === 0 || at < page.length; at += deniedAtOnce) {
      const part = page.slice(at, at + deniedAtOnce).map(parse);
      const added = await add(rebuild, kind, part);
      if (added.kind !== 'added') return added;
      count += part.length - added.others.length;
    }
  }
  return { kind: 'copied', count };
}

/**
 * Marks by normalized names, and what the exact comparison needs besides: each also by the spelling that its denied
 * name has. A name that was removed has none left, and may have had any: its mark becomes one of the whole denylist
 * ('').
 */
async function* withSpellings({ store, base, current, comparison }: Rebuild, marks: Pages): Pages {
  for await (const page of marks) {
    yield page;
    if (comparison !== 'exact' || page.length === 0) continue;
    const names = page.map(([normalized]) => normalized);
    const spellings = await store.hmget(denylistKey(base, current), ...names);
    yield page.map(([normalized, mark], at) => [
      spellings[at] === '' ? normalized : (spellings[at] ?? ''),
      mark,
    ]);
  }
}

/** The marks with their epochs, and those from before marks were epochs (lua/lib/local_writes.lua). */
async function* denylistWrites(store: RedisClient, base: string): Pages {
  yield* scanPairs(store, denylistWritesKey(base));
  const mark = 'd\n';
  for await (const page of scanMembers(store, localWritesKey(base)))
    yield page.filter((member) => member.startsWith(mark)).map((member) => [member.slice(mark.length), '0']);
}

/** The marks of adopted names with their times. */
async function* adoptedNames(store: RedisClient, base: string): Pages {
  const mark = 'name:';
  for await (const page of scanPairs(store, adoptionsKey(base)))
    yield page
      .filter(([field]) => field.startsWith(mark))
      .map(([field, at]) => [field.slice(mark.length), at]);
}
