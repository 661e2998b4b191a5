import { normalizedName, type UsernameComparison } from '../../domain/usernames.ts';
import { inBatches } from '../../lib/collections/batches.ts';
import { yieldingChunks } from '../../lib/time-slices.ts';
import {
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

type Step = [token: string, step: number, leaseMs: number, next: string];

const addNames = script<
  [...Step, ...pairs: string[]],
  ['lapsed'] | ['added', collisions: [position: number, holder: string][]]
>('reindex/names');

const addDenied = script<[...Step, ...pairs: string[]], ['lapsed'] | ['added', count: number]>(
  'reindex/denied',
);

const addDenylistWrites = script<[...Step, ...pairs: string[]], 'lapsed' | 'marked'>(
  'reindex/denylist_writes',
);

/** A rebuild of one organization's name index in progress: see reindex.ts. */
export interface Rebuild {
  store: RedisClient;
  base: string;
  token: string;
  /** How many calls were made: Redis makes each only if it has made the one before. */
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

/** Users whose names would be the same. */
export type Collision = { userId: string; username: string }[];

type Stopped = { kind: 'lapsed' | 'interrupted' | 'inconsistent' };
type Copied = { kind: 'copied'; count: number };
type Collided = { kind: 'collisions'; collisions: Collision[]; isComplete: boolean };

interface Name {
  userId: string;
  username: string;
  /** By the new comparison. */
  normalized: string;
}

/** Buckets read at once: some 300 names, for a script call of a few milliseconds. */
const bucketsAtOnce = 8;
/** Denied names in one script call. */
const deniedAtOnce = 300;
/** An operator needs the first few, and memory stays flat. */
const reportedCollisions = 1000;

const nextStep = (rebuild: Rebuild): Step => [rebuild.token, rebuild.step++, rebuild.lease, rebuild.next];

/** Copies the names to the next generation, normalized by the new comparison. */
export async function copyNames(rebuild: Rebuild): Promise<Copied | Stopped | Collided> {
  const { store, base, current, buckets, signal } = rebuild;
  const collisions = new Map<string, Collision>();
  let isComplete = true;
  let count = 0;
  for (const keys of inBatches(bucketKeys(base, current, buckets), { size: bucketsAtOnce })) {
    if (signal?.aborted === true) return { kind: 'interrupted' };
    const names = await readNames(rebuild, keys);
    if (names === undefined) return { kind: 'inconsistent' };
    const pairs = names.flatMap(({ userId, normalized }) => [userId, normalized]);
    const reply = await addNames(store, base, ...nextStep(rebuild), ...pairs);
    if (reply[0] === 'lapsed') return { kind: 'lapsed' };
    count += names.length;
    for (const [position, holder] of reply[1]) {
      const { userId = '', username = '', normalized = '' } = names[position] ?? {};
      // The index has the name twice.
      if (holder === userId) return { kind: 'inconsistent' };
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
  const { store, base, comparison } = rebuild;
  const read = await Promise.all(keys.map((key) => store.hgetall(key)));
  const snapshot = await readWriteSnapshot(store, base);
  const names = await Promise.all(
    read.flatMap(Object.entries<string>).map(async ([normalized, userId]) => {
      const username = await usernameOf(rebuild, userId);
      return normalizedName(username, snapshot.settings.comparison) === normalized
        ? { userId, username, normalized: normalizedName(username, comparison) }
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
    count += lengths.reduce((sum, length) => sum + length, 0);
    await addNames(store, base, ...nextStep(rebuild));
  }
  return count;
}

/** Copies the denylist to the next generation; spellings that become the same name become one entry. */
export async function copyDenied(rebuild: Rebuild): Promise<Copied | Stopped> {
  const { store, base, comparison, current, signal } = rebuild;
  let count = 0;
  for await (const page of scanPairs(store, denylistKey(base, current))) {
    for await (const chunk of yieldingChunks(page, deniedAtOnce)) {
      if (signal?.aborted === true) return { kind: 'interrupted' };
      const pairs = chunk.flatMap(([normalized, given]) => {
        const name = given === '' ? normalized : given;
        return [name, normalizedName(name, comparison)];
      });
      const reply = await addDenied(store, base, ...nextStep(rebuild), ...pairs);
      if (reply[0] === 'lapsed') return { kind: 'lapsed' };
      count += reply[1];
    }
  }
  return { kind: 'copied', count };
}

/** Marks of names that were denied or removed here are also set for the names as the new comparison has them. */
export async function copyDenylistWrites(rebuild: Rebuild): Promise<Stopped | undefined> {
  const { store, base, comparison, signal } = rebuild;
  for await (const page of denylistWrites(store, base)) {
    if (signal?.aborted === true) return { kind: 'interrupted' };
    const pairs = page.flatMap(([normalized, epoch]) => [normalizedName(normalized, comparison), epoch]);
    const reply = await addDenylistWrites(store, base, ...nextStep(rebuild), ...pairs);
    if (reply === 'lapsed') return { kind: 'lapsed' };
  }
  return undefined;
}

/** The marks with their numbers, and those from before marks had numbers (lua/lib/local_writes.lua). */
async function* denylistWrites(
  store: RedisClient,
  base: string,
): AsyncGenerator<(readonly [normalized: string, number: string])[]> {
  yield* scanPairs(store, denylistWritesKey(base));
  const mark = 'd\n';
  for await (const page of scanMembers(store, localWritesKey(base)))
    yield page.filter((member) => member.startsWith(mark)).map((member) => [member.slice(mark.length), '0']);
}
