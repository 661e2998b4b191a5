import { comparisonForm, type UsernameComparison } from '../../domain/usernames.ts';
import { generationOf } from './generations.ts';
import { denylistKey, localWritesKey, profileKey } from '../keys.ts';
import { scanKeys, scanMembers, scanPairs } from '../scan.ts';
import type { ReindexStore } from './scripts.ts';

/** A rebuild of one organization's name index under way: see reindex.ts. */
export interface Rebuild {
  store: ReindexStore;
  base: string;
  token: string;
  /** ms */
  lease: number;
  /** The comparison that is to be. */
  comparison: UsernameComparison;
  /** The generation in force, and the one being built. */
  current: string;
  next: string;
  signal: AbortSignal | undefined;
}

/** Users whose names would be one name. */
export type Collision = { userId: string; username: string }[];

type Stopped = { kind: 'lapsed' } | { kind: 'interrupted' };
type Added = { kind: 'added'; count: number };
type Collided = { kind: 'collisions'; collisions: Collision[]; isComplete: boolean };

interface Name {
  userId: string;
  username: string;
  form: string;
}

/** Names in one script call: few enough that none holds Redis for more than a few milliseconds. */
const chunkSize = 300;
/** Collisions that are told: an operator needs the first few, and memory stays flat. */
const toldCollisions = 1000;

/** Puts the names of all profiles into the next generation, and removes what a killed rebuild has left. */
export async function addNames(rebuild: Rebuild): Promise<Added | Stopped | Collided> {
  const { store, base, token, lease, next, signal } = rebuild;
  const collisions = new Map<string, Name[]>();
  let isComplete = true;
  let count = 0;
  let renewAt = Date.now() + lease / 4;
  for await (const keys of scanKeys(store, base)) {
    if (signal?.aborted === true) return { kind: 'interrupted' };
    await dropLeftovers(rebuild, keys);
    const names = await readNames(rebuild, usersAmong(keys, base));
    // The way through other organizations' keys takes time, too, which the freeze must outlast.
    const isDue = names.length === 0 && Date.now() > renewAt;
    for (const chunk of isDue ? [[]] : chunksOf(names)) {
      const pairs = chunk.flatMap(({ userId, form }) => [userId, form]);
      const reply = await store.reindexNames(base, token, lease, next, ...pairs);
      renewAt = Date.now() + lease / 4;
      if (reply[0] === 'lapsed') return { kind: 'lapsed' };
      count += reply[1];
      for (const [position, holder] of reply[2]) {
        const name = chunk[position];
        if (name === undefined) continue;
        if (!collisions.has(name.form) && collisions.size >= toldCollisions) isComplete = false;
        else await tell(rebuild, collisions, name, holder);
      }
    }
  }
  if (collisions.size === 0) return { kind: 'added', count };
  const told = [...collisions.values()].map((names) =>
    names.map(({ userId, username }) => ({ userId, username })),
  );
  return { kind: 'collisions', collisions: told, isComplete };
}

async function tell(
  rebuild: Rebuild,
  collisions: Map<string, Name[]>,
  name: Name,
  holder: string,
): Promise<void> {
  const names = collisions.get(name.form) ?? (await readNames(rebuild, [holder]));
  if (!names.some(({ userId }) => userId === name.userId)) names.push(name);
  collisions.set(name.form, names);
}

/** Puts the denylist into the next generation; spellings that are the same from now on become one entry. */
export async function addDenied(rebuild: Rebuild): Promise<Added | Stopped> {
  const { store, base, token, lease, comparison, current, next, signal } = rebuild;
  let count = 0;
  for await (const page of scanPairs(store, denylistKey(base, current))) {
    if (signal?.aborted === true) return { kind: 'interrupted' };
    for (const chunk of chunksOf(page)) {
      const pairs = chunk.flatMap(([form, given]) => {
        const name = given === '' ? form : given;
        return [name, comparisonForm(name, comparison)];
      });
      const reply = await store.reindexDenied(base, token, lease, next, ...pairs);
      if (reply[0] === 'lapsed') return { kind: 'lapsed' };
      count += reply[1];
    }
  }
  return { kind: 'added', count };
}

/** Names that were denied or undenied here stay so for a migration, also under their next forms. */
export async function keepMarks({ store, base, comparison }: Rebuild): Promise<void> {
  const mark = 'd\n';
  for await (const page of scanMembers(store, localWritesKey(base))) {
    const marks = page
      .filter((member) => member.startsWith(mark))
      .map((member) => mark + comparisonForm(member.slice(mark.length), comparison));
    for (const chunk of chunksOf(marks)) await store.sadd(localWritesKey(base), chunk);
  }
}

async function dropLeftovers({ store, base, current, next }: Rebuild, keys: string[]): Promise<void> {
  const leftovers = keys.filter((key) => {
    const generation = generationOf(base, key);
    return generation !== undefined && generation !== current && generation !== next;
  });
  if (leftovers.length > 0) await store.unlink(leftovers);
}

function usersAmong(keys: string[], base: string): string[] {
  const start = profileKey(base, '');
  return keys.filter((key) => key.startsWith(start)).map((key) => key.slice(start.length));
}

async function readNames({ store, base, comparison }: Rebuild, users: string[]): Promise<Name[]> {
  const names = await Promise.all(users.map((userId) => store.hget(profileKey(base, userId), 'u')));
  return users.flatMap((userId, position) => {
    const username = names[position] ?? '';
    return username === '' ? [] : [{ userId, username, form: comparisonForm(username, comparison) }];
  });
}

function chunksOf<Item>(items: Item[]): Item[][] {
  const chunks: Item[][] = [];
  for (let at = 0; at < items.length; at += chunkSize) chunks.push(items.slice(at, at + chunkSize));
  return chunks;
}
