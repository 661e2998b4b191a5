import type { Profile } from '../../contract/types.gen.ts';
import { toGetView, type FileUrl } from '../../contract/views.ts';
import type { ReadOutcome } from '../../redis/profiles.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { profileKey } from '../../redis/keys.ts';
import { readJson } from '../forward/content.ts';
import type { LegacyResponse } from '../forward/legacy.ts';

/** What can differ between a profile there and here; `profile` if only one side has one. */
export const comparedFields = [
  'profile',
  'username',
  'profilePictureUrl',
  'avatar.url',
  'avatar.datasourceId',
  'avatar.objectDefinitionId',
  'evmLinkedWalletAddress',
] as const;

export type ComparedField = (typeof comparedFields)[number];

/** A profile in the contract's shape (2.1); undefined if the user has none. */
export type Shown = Profile | undefined;

/** `unreadable`: no profile. `body` is undefined if it was too long or broke off. */
export async function shownByLegacy(
  { status, headers }: Pick<LegacyResponse, 'status' | 'headers'>,
  body: Buffer | undefined,
): Promise<Shown | 'unreadable'> {
  if (status === 404) return undefined;
  const value = status === 200 ? await readJson({ headers }, body) : undefined;
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? value : 'unreadable';
}

/** In which fields a profile as the legacy service shows it differs from the one stored here, as GET would show it. */
export async function compare(
  { store, base, fileUrl }: { store: RedisClient; base: string; fileUrl: FileUrl },
  legacy: Shown,
  here: Exclude<ReadOutcome, { kind: 'unknown' }>,
): Promise<ComparedField[]> {
  const profile = here.kind === 'profile' ? here.profile : undefined;
  const view = profile && toGetView(profile, fileUrl);
  const fields = differingFields(legacy, view);
  const { userId } = here.caller;
  const isCopy = fields.includes('profilePictureUrl') && profile?.pictureFile !== undefined;
  if (!isCopy || userId === undefined) return fields;
  const copiedFrom = await store.hget(profileKey(base, userId), 'po');
  return differingFields(legacy, view, copiedFrom ?? undefined);
}

/** The fields in which two profiles differ. `copiedFrom`: the URL that the picture here was copied from, if it was. */
export function differingFields(legacy: Shown, here: Shown, copiedFrom?: string): ComparedField[] {
  if ((legacy === undefined) !== (here === undefined)) return ['profile'];
  return comparedFields.filter((field) => {
    const [there, stored] = [valueOf(legacy, field), valueOf(here, field)];
    // Of a picture that was copied here, the legacy service still shows the URL that it was copied from.
    const isCopy = field === 'profilePictureUrl' && stored !== '' && there === copiedFrom;
    return there !== stored && !isCopy;
  });
}

/** Empty for what is unset: absent, null or empty, whichever way a service says so. */
function valueOf(profile: Shown, field: ComparedField): string {
  if (field === 'profile') return '';
  const [name, part] = field.split('.') as [keyof Profile, string?];
  const value: unknown = profile?.[name];
  const inner = part === undefined ? value : (value as Record<string, unknown> | null | undefined)?.[part];
  if (inner === undefined || inner === null) return '';
  return typeof inner === 'string' ? inner : JSON.stringify(inner);
}
