import { hash } from 'node:crypto';
import { encodeReference, type ObjectReference } from '../../../src/domain/profile.ts';
import { defaultSettings } from '../../../src/domain/settings.ts';
import { organizationBase, profileKey } from '../../../src/redis/keys.ts';
import { setObject } from '../../../src/redis/operator/profile-data.ts';
import { saveSettings } from '../../../src/redis/organizations.ts';
import { putProfile } from '../../../src/redis/profiles.ts';
import type { WriteSnapshot } from '../../../src/redis/changes.ts';
import { users } from './load.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { script } from '../../../src/redis/connection/script-loader.ts';

const createKey = script<(string | number)[], unknown>('api_key/create');

export const adminKey = 'admin-key-of-the-bench';
/** The key of user number `{user}`, as a template. */
export const playerKey = 'player-key-of-user-{user}';

export function playerKeyOf(user: number): string {
  return playerKey.replace('{user}', String(user));
}

export const pictureUrl = 'https://images.example.com/pictures/12345.png';
export const wallet = '0x52908400098527886E0F7030069857D2E4169EE7';
/** A reference of two ids of 24 characters each. */
export const avatar: ObjectReference = {
  datasourceId: '665f1c2ab7e4d90012a3b4c5',
  objectDefinitionId: '665f1c2ab7e4d90012a3b4c6',
};
export const avatarUrl = 'https://images.example.com/objects/665f1c2ab7e4d90012a3b4c6.png';
/** Another one, to be set. */
const otherAvatar: ObjectReference = { ...avatar, objectDefinitionId: '665f1c2ab7e4d90012a3b4c7' };

/** What a name in an organization with default settings is checked against. */
const snapshot: WriteSnapshot = { settings: defaultSettings, index: '0', epoch: 0 };

export function baseOf(organization: string): string {
  return organizationBase('pb:', organization);
}

/** The id of user number `user`: 36 characters, as a UUID has. */
export function userId(user: number): string {
  return `7d1f0c3e-52b8-4c6a-9e4f-${String(user).padStart(12, '0')}`;
}

/** The initial name of user number `user`. */
export function usernameOf(user: number): string {
  return `player-${String(user).padStart(6, '0')}`;
}

/** An organization with an admin key, and `users` users who have a key and a whole profile each. */
export async function seedOrganization(store: RedisClient, organization: string): Promise<void> {
  const base = baseOf(organization);
  await saveSettings(store, 'pb:', organization, defaultSettings);
  await createKey(store, base, hash('sha256', adminKey), 'k_admin', 'admin', '', 'bench', '');
  await setObject(store, base, encodeReference(avatar), avatarUrl);
  await setObject(store, base, encodeReference(otherAvatar), avatarUrl);
  await Promise.all(
    Array.from({ length: users }, async (_, user) => {
      await createPlayerKey(store, base, user, userId(user));
      await seedProfile(store, base, userId(user), usernameOf(user));
    }),
  );
}

/** Creates key number `number` for a user. */
export async function createPlayerKey(
  store: RedisClient,
  base: string,
  number: number,
  user: string,
): Promise<void> {
  const key = hash('sha256', playerKeyOf(number));
  await createKey(store, base, key, `k_${number}`, 'player', user, 'bench', '');
}

/** A profile as the migration leaves it: a name, a picture URL, an avatar by reference, a wallet. */
async function seedProfile(store: RedisClient, base: string, user: string, username: string): Promise<void> {
  const outcome = await putProfile(store, base, user, { username, avatar }, snapshot);
  if (outcome.kind !== 'put') throw new Error(`seeding failed: ${outcome.kind}`);
  const profile = profileKey(base, user);
  await store.hset(profile, { pu: pictureUrl, w: wallet });
  // Only writes over HTTP leave this mark.
  await store.hdel(profile, 'b');
}

/** Gives every user the name that `nameOf` says. */
export async function rename(
  store: RedisClient,
  base: string,
  nameOf: (user: number) => string,
): Promise<void> {
  await Promise.all(
    Array.from({ length: users }, async (_, user) => {
      const username = (await store.hget(profileKey(base, userId(user)), 'u')) ?? undefined;
      const known = { ...snapshot, username };
      const outcome = await putProfile(store, base, userId(user), { username: nameOf(user) }, known);
      if (outcome.kind !== 'put') throw new Error(`renaming failed: ${outcome.kind}`);
    }),
  );
}

/** The keys of the afternoon version: the same users with the same profiles. */
export async function seedAfternoon(store: RedisClient): Promise<void> {
  for (const { datasourceId, objectDefinitionId } of [avatar, otherAvatar]) {
    await store.hset('objects:afternoon', `${datasourceId}:${objectDefinitionId}`, avatarUrl);
  }
  await Promise.all(
    Array.from({ length: users }, async (_, user) => {
      const id = userId(user);
      await store.hset(`apikey:${playerKeyOf(user)}`, {
        organization: 'afternoon',
        user: id,
        role: 'player',
      });
      await store.hset(`profile:afternoon:${id}`, {
        username: usernameOf(user),
        pictureUrl,
        avatar: JSON.stringify(avatar),
        avatarUrl,
        wallet,
      });
    }),
  );
}
