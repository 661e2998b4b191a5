import type { ObjectReference } from '../../domain/profile.ts';

/** What can be migrated, such that records refer only to records of earlier entities. */
export const entityNames = [
  'organizations',
  'api-keys',
  'objects',
  'collections',
  'profiles',
  'denylist',
] as const;
export type Entity = (typeof entityNames)[number];

/** Whether a word names an entity. */
export function isEntity(word: string): word is Entity {
  return (entityNames as readonly string[]).includes(word);
}

export interface OrganizationRecord {
  organizationId: string;
  usernameMinLength?: number;
  usernameMaxLength?: number;
  usernamePattern?: string;
  usernameComparison?: 'exact' | 'case-insensitive';
  objectImageUrlTemplate?: string;
  requireOwnership?: boolean;
}

/** A key is known by its SHA-256 alone (64 lower-case hexadecimal digits); expiresAt in epoch milliseconds. */
export interface ApiKeyRecord {
  organizationId: string;
  apiKeySha256: string;
  role: 'player' | 'admin';
  userId?: string;
  client?: string;
  expiresAt?: number;
}

interface ObjectRecord extends ObjectReference {
  organizationId: string;
  url: string;
}

interface CollectionRecord extends ObjectReference {
  organizationId: string;
  userId: string;
}

/** updatedAt in epoch milliseconds. evmWalletVerified is there exactly when evmWalletAddress is. */
export interface ProfileRecord {
  organizationId: string;
  userId: string;
  username?: string;
  profilePictureUrl?: string;
  profilePictureObjectDefinitionId?: ObjectReference;
  avatar?: ObjectReference & { url?: string };
  evmWalletAddress?: string;
  evmWalletVerified?: boolean;
  updatedAt?: number;
}

interface DenylistRecord {
  organizationId: string;
  username: string;
}

export interface RecordOf {
  organizations: OrganizationRecord;
  'api-keys': ApiKeyRecord;
  objects: ObjectRecord;
  collections: CollectionRecord;
  profiles: ProfileRecord;
  denylist: DenylistRecord;
}
