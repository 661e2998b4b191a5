import type { Profile } from '../../contract/types.gen.ts';
import { toGetView, type FileUrl } from '../../contract/views.ts';
import type { ReadOutcome } from '../../redis/profiles.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { profileKey } from '../../redis/keys.ts';
import { readAnswer } from '../forward/content.ts';
import type { LegacyResponse } from '../forward/legacy.ts';

/** The fields of a profile in the contract's shape (2.1), by their paths. */
const profileFields = [
  'username',
  'profilePictureUrl',
  'avatar.url',
  'avatar.datasourceId',
  'avatar.objectDefinitionId',
  'evmLinkedWalletAddress',
] as const;

/** What can differ between a profile there and here; `profile` if only one side has one. */
export const comparedFields = ['profile', ...profileFields] as const;

export type ComparedField = (typeof comparedFields)[number];

/** The names that a profile's own fields have in JSON. */
const ownFields = new Set(profileFields.map((field) => field.replace(/\..*/, '')));

/** A profile by its fields, those that are set; undefined if the user has none. */
export type Shown = Partial<Record<(typeof profileFields)[number], string>> | undefined;

/**
 * A profile in the contract's shape by its fields. Null and empty are as unset as absent, whichever way a service says
 * so, and a number stands for its digits. `unreadable`: something is of another type, or there are fields, and none of
 * them is a profile's, as in an error that is answered with 200; so it is not a profile.
 */
export function toShown(profile: Profile | undefined): Shown | 'unreadable' {
  if (profile === undefined) return undefined;
  const names = Object.keys(profile);
  if (names.length > 0 && !names.some((name) => ownFields.has(name))) return 'unreadable';
  const avatar: unknown = profile.avatar || {};
  if (typeof avatar !== 'object') return 'unreadable';
  const values: Record<string, unknown> = { ...profile };
  for (const [name, value] of Object.entries(avatar as object)) values[`avatar.${name}`] = value;
  const shown: Shown = {};
  for (const field of profileFields) {
    const value = values[field] ?? '';
    if (typeof value !== 'string' && typeof value !== 'number') return 'unreadable';
    if (value !== '') shown[field] = String(value);
  }
  return shown;
}

/**
 * Undefined if the legacy service says that there is no profile; `unreadable` if it does not tell. `body` is undefined if
 * it was too long or broke off.
 */
export async function shownByLegacy(
  { status, headers }: Pick<LegacyResponse, 'status' | 'headers'>,
  body: Buffer | undefined,
): Promise<Shown | 'unreadable'> {
  if (status === 404) return undefined;
  const value = status === 200 ? await readAnswer({ headers }, body) : null;
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? toShown(value) : 'unreadable';
}

/** In which fields a profile as the legacy service shows it differs from the one stored here, as GET would show it. */
export async function compare(
  { store, base, fileUrl }: { store: RedisClient; base: string; fileUrl: FileUrl },
  legacy: Shown,
  here: Exclude<ReadOutcome, { kind: 'unknown' }>,
): Promise<ComparedField[]> {
  const profile = here.kind === 'profile' ? here.profile : undefined;
  const fields = differingFields(legacy, toShown(profile && toGetView(profile, fileUrl)) as Shown);
  const { userId } = here.caller;
  if (!fields.includes('profilePictureUrl') || profile?.pictureFile === undefined || userId === undefined) {
    return fields;
  }
  // Of a picture that was copied here, the legacy service still shows the URL that it was copied from.
  const copiedFrom = await store.hget(profileKey(base, userId), 'po');
  return fields.filter((field) => field !== 'profilePictureUrl' || copiedFrom !== legacy?.[field]);
}

/** The fields in which two profiles differ. */
export function differingFields(legacy: Shown, here: Shown): ComparedField[] {
  if (legacy === undefined || here === undefined) return legacy === here ? [] : ['profile'];
  return profileFields.filter((field) => legacy[field] !== here[field]);
}
