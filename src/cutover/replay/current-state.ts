import { normalizedName } from '../../domain/usernames.ts';
import { decodeReference, type ProfileChange } from '../../domain/profile.ts';
import { denylistKey, profileKey } from '../../redis/keys.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { scanPairs } from '../../redis/connection/scan.ts';
import { readWriteSnapshot, type WriteSnapshot } from '../../redis/changes.ts';
import { yieldingChunks } from '../../lib/time-slices.ts';

/**
 * What a PUT has to contain to make the profile there as it is here, except for a picture that only has the legacy URL.
 * Undefined if the user has no profile.
 */
export async function currentProfile(
  store: RedisClient,
  base: string,
  userId: string,
): Promise<ProfileChange | undefined> {
  const fields = ['t', 'u', 'pf', 'pr', 'pu', 'ar'];
  const [changed, username, file, reference, url, avatar] = await store.hmget(
    profileKey(base, userId),
    ...fields,
  );
  if (typeof changed !== 'string') return undefined;
  const state: ProfileChange = { avatar: avatar ? decodeReference(avatar) : null };
  if (username) state.username = username;
  if (file) state.picture = { file };
  else if (reference) state.picture = { reference: decodeReference(reference) };
  else if (!url) state.picture = null;
  return state;
}

const namesAtOnce = 500;

/** Those of these names that are denied now. */
export async function deniedAmong(
  store: RedisClient,
  base: string,
  names: Iterable<string>,
): Promise<Set<string>> {
  return await inOneGeneration(store, base, async ({ index, settings }) => {
    const denied = new Set<string>();
    for await (const part of yieldingChunks(names, namesAtOnce)) {
      const normalizedNames = part.map((name) => normalizedName(name, settings.comparison));
      const found = await store.hmget(denylistKey(base, index), ...normalizedNames);
      for (const [at, name] of part.entries()) if (found[at] !== null) denied.add(name);
    }
    return denied;
  });
}

/** The whole denylist as it is now. */
export async function currentDenylist(store: RedisClient, base: string): Promise<string[]> {
  return await inOneGeneration(store, base, async ({ index }) => {
    const names = new Map<string, string>();
    for await (const page of scanPairs(store, denylistKey(base, index))) {
      for (const [normalized, spelling] of page)
        names.set(normalized, spelling === '' ? normalized : spelling);
    }
    return [...names.values()];
  });
}

/** Reads of the generation in force; again if another one is by then, since what is replaced is removed. */
async function inOneGeneration<Found>(
  store: RedisClient,
  base: string,
  read: (snapshot: WriteSnapshot) => Promise<Found>,
): Promise<Found> {
  for (let snapshot = await readWriteSnapshot(store, base); ;) {
    const found = await read(snapshot);
    const now = await readWriteSnapshot(store, base);
    if (now.index === snapshot.index) return found;
    snapshot = now;
  }
}
