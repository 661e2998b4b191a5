import type { Profile } from '../../contract/types.gen.ts';

/** What can differ between a profile there and here; `profile` where only one side has one. */
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

/** A profile in the contract's shape (2.1); undefined where the user has none. */
export type Shown = Profile | undefined;

/**
 * The differences that mean nothing. A field that is absent, null or empty is unset, whichever way a service says so;
 * and of a picture that was copied here, the legacy service still shows the URL that it was copied from.
 */
function isHarmless(
  field: ComparedField,
  legacy: string,
  here: string,
  copiedFrom: string | undefined,
): boolean {
  return legacy === here || (field === 'profilePictureUrl' && here !== '' && legacy === copiedFrom);
}

/** The fields in which two profiles differ. `copiedFrom`: the URL that the picture here was copied from, if it was. */
export function differingFields(legacy: Shown, here: Shown, copiedFrom?: string): ComparedField[] {
  if ((legacy === undefined) !== (here === undefined)) return ['profile'];
  return comparedFields.filter(
    (field) => !isHarmless(field, valueOf(legacy, field), valueOf(here, field), copiedFrom),
  );
}

/** Empty for what is unset. */
function valueOf(profile: Shown, field: ComparedField): string {
  if (field === 'profile') return '';
  const [name, part] = field.split('.') as [keyof Profile, string?];
  const value: unknown = profile?.[name];
  const inner = part === undefined ? value : (value as Record<string, unknown> | null | undefined)?.[part];
  return typeof inner === 'string'
    ? inner
    : inner === undefined || inner === null
      ? ''
      : JSON.stringify(inner);
}
