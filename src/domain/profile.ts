/** A reference to an image object (contract 2.3). */
export interface ObjectReference {
  datasourceId: string;
  objectDefinitionId: string;
}

/** A reference as one string. IDs contain no control characters, so the line feed is unambiguous. */
export function encodeReference(reference: ObjectReference): string {
  return `${reference.datasourceId}\n${reference.objectDefinitionId}`;
}

/** The reference that `encodeReference` wrote. */
export function decodeReference(encoded: string): ObjectReference {
  const cut = encoded.indexOf('\n');
  return { datasourceId: encoded.slice(0, cut), objectDefinitionId: encoded.slice(cut + 1) };
}

/** Why a template of URLs, which lua/lib/store.lua fills in, cannot be used; undefined if it can. */
export function templateFault(template: string): string | undefined {
  const probe = template.replace(/\{(datasourceId|objectDefinitionId)\}/g, 'id');
  if (!URL.canParse(probe)) return 'must be an absolute URL';
  if (!/^https?:$/.test(new URL(probe).protocol)) return 'must be an http or https URL';
  return undefined;
}

/** Whether a template gives the reference a URL: not if an id is `.` or `..`, which leads to another folder. */
export function canFillTemplate({ datasourceId, objectDefinitionId }: ObjectReference): boolean {
  return ![datasourceId, objectDefinitionId].some((id) => /^\.\.?$/.test(id));
}

/** A user's profile, its URLs looked up. Unset fields are absent. */
export interface Profile {
  username?: string;
  /** An uploaded picture. */
  pictureFile?: string;
  /** The URL of any other picture: of an object, or from legacy data. */
  pictureUrl?: string;
  /** A reference, encoded. */
  avatar?: string;
  avatarUrl?: string;
  /** The address of the linked wallet, if it is verified. */
  wallet?: string;
}

/** How long an uploaded file may be pending, in ms; after that, a profile can no longer take it. */
export const pendingGraceMs = 300_000;
/** How long a pending or orphaned file is kept, in ms: much longer, so that no sweep removes what a profile takes. */
export const orphanGraceMs = 600_000;

/** What a PUT changes: absent fields stay unchanged, null unsets (contract 4.2). */
export interface ProfileChange {
  username?: string;
  picture?: { file: string } | { reference: ObjectReference } | null;
  avatar?: ObjectReference | null;
}

/** An EVM address, in any spelling: its capitals may be a checksum. */
export const walletForm = /^0x[0-9a-fA-F]{40}$/;
