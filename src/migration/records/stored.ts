import { decodeReference, encodeReference } from '../../domain/profile.ts';
import { defaultSettings, type OrganizationSettings } from '../../domain/settings.ts';
import { pictureTypeOf } from '../../media/store.ts';
import type { ApiKeyRecord, OrganizationRecord, ProfileRecord } from './records.ts';

/** Fields of a stored profile by their names in Redis (src/redis/README.md). */
export type StoredProfile = ReadonlyMap<string, string>;

/**
 * A profile's fields as Redis holds them, name and value in turn. `t` is always the last; it is empty where the
 * source does not say when the profile changed. They follow what is in `fields`. The URLs of the bridge's own picture
 * files begin with `pictureUrlPrefix`.
 */
export function profileFields(
  record: ProfileRecord,
  pictureUrlPrefix: string,
  fields: string[] = [],
): string[] {
  if (record.username !== undefined) fields.push('u', record.username);
  const reference = record.profilePictureObjectDefinitionId;
  const url = record.profilePictureUrl;
  if (url !== undefined) {
    // If there is a reference as well, that is the picture, and the URL is only kept.
    const file = reference === undefined ? ownFile(url, pictureUrlPrefix) : undefined;
    if (file === undefined) fields.push('pu', url);
    else fields.push('pf', file);
  }
  if (reference !== undefined) fields.push('pr', encodeReference(reference));
  if (record.avatar !== undefined) {
    fields.push('ar', encodeReference(record.avatar));
    if (record.avatar.url !== undefined) fields.push('au', record.avatar.url);
  }
  if (record.evmWalletAddress !== undefined) {
    fields.push(record.evmWalletVerified === true ? 'w' : 'wu', record.evmWalletAddress);
  }
  fields.push('t', record.updatedAt === undefined ? '' : String(record.updatedAt));
  return fields;
}

/** The record of a stored profile; what `profileFields` makes of it is the same profile again. */
export function profileRecord(
  organizationId: string,
  userId: string,
  stored: StoredProfile,
  pictureUrlPrefix: string,
): ProfileRecord {
  const record: ProfileRecord = { organizationId, userId };
  const username = stored.get('u');
  if (username !== undefined) record.username = username;
  const file = stored.get('pf');
  const url = file === undefined ? stored.get('pu') : pictureUrlPrefix + file;
  if (url !== undefined) record.profilePictureUrl = url;
  const picture = stored.get('pr');
  if (picture !== undefined) record.profilePictureObjectDefinitionId = decodeReference(picture);
  const avatar = stored.get('ar');
  if (avatar !== undefined) {
    const avatarUrl = stored.get('au');
    record.avatar =
      avatarUrl === undefined ? decodeReference(avatar) : { url: avatarUrl, ...decodeReference(avatar) };
  }
  const wallet = stored.get('w') ?? stored.get('wu');
  if (wallet !== undefined) {
    record.evmWalletAddress = wallet;
    record.evmWalletVerified = stored.has('w');
  }
  const changed = stored.get('t') ?? '';
  if (changed !== '') record.updatedAt = Number(changed);
  return record;
}

/** The name of the bridge's own picture file at a URL; undefined for any other URL. */
function ownFile(url: string, pictureUrlPrefix: string): string | undefined {
  if (!url.startsWith(pictureUrlPrefix)) return undefined;
  const name = url.slice(pictureUrlPrefix.length);
  return pictureTypeOf(name) === undefined ? undefined : name;
}

/** An organization's settings, whole: what the record leaves out has its default. */
export function organizationSettings(record: OrganizationRecord): OrganizationSettings {
  return {
    comparison: record.usernameComparison ?? defaultSettings.comparison,
    minLength: record.usernameMinLength ?? defaultSettings.minLength,
    maxLength: record.usernameMaxLength ?? defaultSettings.maxLength,
    pattern: record.usernamePattern,
    objectImageUrlTemplate: record.objectImageUrlTemplate,
    requireOwnership: record.requireOwnership ?? defaultSettings.requireOwnership,
  };
}

/** The settings as apply_organization.lua takes them. */
export function settingsArguments(settings: OrganizationSettings): string[] {
  return [
    settings.comparison,
    String(settings.minLength),
    String(settings.maxLength),
    settings.pattern ?? '',
    settings.objectImageUrlTemplate ?? '',
    settings.requireOwnership ? '1' : '0',
  ];
}

/** The record of an organization's settings. */
export function organizationRecord(
  organizationId: string,
  settings: OrganizationSettings,
): OrganizationRecord {
  return {
    organizationId,
    usernameMinLength: settings.minLength,
    usernameMaxLength: settings.maxLength,
    ...(settings.pattern !== undefined && { usernamePattern: settings.pattern }),
    usernameComparison: settings.comparison,
    ...(settings.objectImageUrlTemplate !== undefined && {
      objectImageUrlTemplate: settings.objectImageUrlTemplate,
    }),
    requireOwnership: settings.requireOwnership,
  };
}

/** A key's record as Redis holds it, by field; undefined if there is none. */
export function apiKeyRecord(
  organizationId: string,
  apiKeySha256: string,
  { r, u, c, e }: Readonly<Record<string, string | undefined>>,
): ApiKeyRecord {
  return {
    organizationId,
    apiKeySha256,
    role: r === 'admin' ? 'admin' : 'player',
    ...(u !== undefined && { userId: u }),
    ...(c !== undefined && { client: c }),
    ...(e !== undefined && { expiresAt: Number(e) }),
  };
}
