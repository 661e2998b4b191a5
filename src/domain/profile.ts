import type { ObjectReference } from './objects.ts';

/** A user's profile as the store holds it. What is unset is absent. */
export interface Profile {
  username?: string;
  picture?: Picture;
  avatar?: ReferencedImage;
  /** The linked wallet's address; the contract shows it only where it is verified. */
  wallet?: string;
}

/** A picture is an uploaded file, an object of the user's collection, or a URL that legacy data brought along. */
export type Picture =
  { kind: 'file'; name: string } | ({ kind: 'reference' } & ReferencedImage) | { kind: 'url'; url: string };

/** A reference with the URL it resolves to, where it does. */
export interface ReferencedImage {
  reference: ObjectReference;
  url?: string;
}

/**
 * How long an uploaded file may be pending, in ms, before a profile can no longer take it; and how long a pending or
 * orphaned file is kept before the sweep removes it. The second is longer than the first by far, so that the sweep
 * never removes a file that a profile is about to refer to.
 */
export const pendingGraceMs = 300_000;
export const orphanGraceMs = 600_000;

/** What one PUT asks for: absent is unchanged, null unsets (contract 4.2). */
export interface ProfileChange {
  username?: string;
  picture?: { file: string } | { reference: ObjectReference } | null;
  avatar?: ObjectReference | null;
}
