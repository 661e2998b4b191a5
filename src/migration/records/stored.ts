import { decodeReference, encodeReference } from '../../domain/profile.ts';
import { defaultSettings, type OrganizationSettings } from '../../domain/settings.ts';
import { pictureTypeOf } from '../../media/store.ts';
import type { RecordOf } from './records.ts';

/**
 * A profile's fields as Redis holds them (src/redis/README.md), name and value in turn. `t` is always the last; it is
 * empty where the source does not say when the profile changed. They follow what is in `fields`. The URLs of the
 * bridge's own picture files begin with `pictureUrlPrefix`.
 */
export function profileFields(
  record: RecordOf['profiles'],
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

/** The record of a stored profile, given its fields; what `profileFields` makes of it is the same profile again. */
export function profileRecord(
  organizationId: string,
  userId: string,
  stored: ReadonlyMap<string, string>,
  pictureUrlPrefix: string,
): RecordOf['profiles'] {
  const [file, picture, avatar] = ['pf', 'pr', 'ar'].map((field) => stored.get(field));
  const wallet = stored.get('w') ?? stored.get('wu');
  const changed = stored.get('t') ?? '';
  return {
    organizationId,
    userId,
    username: stored.get('u'),
    profilePictureUrl: file === undefined ? stored.get('pu') : pictureUrlPrefix + file,
    profilePictureObjectDefinitionId: picture === undefined ? undefined : decodeReference(picture),
    avatar: avatar === undefined ? undefined : { url: stored.get('au'), ...decodeReference(avatar) },
    evmWalletAddress: wallet,
    evmWalletVerified: wallet === undefined ? undefined : stored.has('w'),
    updatedAt: changed === '' ? undefined : Number(changed),
  };
}

/** The name of the bridge's own picture file at a URL; undefined for any other URL. */
function ownFile(url: string, pictureUrlPrefix: string): string | undefined {
  if (!url.startsWith(pictureUrlPrefix)) return undefined;
  const name = url.slice(pictureUrlPrefix.length);
  return pictureTypeOf(name) === undefined ? undefined : name;
}

/** An organization's settings, whole: what the record leaves out has its default. */
export function organizationSettings(record: RecordOf['organizations']): OrganizationSettings {
  return {
    comparison: record.usernameComparison ?? defaultSettings.comparison,
    minLength: record.usernameMinLength ?? defaultSettings.minLength,
    maxLength: record.usernameMaxLength ?? defaultSettings.maxLength,
    pattern: record.usernamePattern,
    objectImageUrlTemplate: record.objectImageUrlTemplate,
    requireOwnership: record.requireOwnership ?? defaultSettings.requireOwnership,
  };
}

/** The settings as apply_records.lua takes them. */
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
): RecordOf['organizations'] {
  return {
    organizationId,
    usernameMinLength: settings.minLength,
    usernameMaxLength: settings.maxLength,
    usernamePattern: settings.pattern,
    usernameComparison: settings.comparison,
    objectImageUrlTemplate: settings.objectImageUrlTemplate,
    requireOwnership: settings.requireOwnership,
  };
}

/** The record of a stored API key with these fields. */
export function apiKeyRecord(
  organizationId: string,
  apiKeySha256: string,
  { r, u, c, e }: Readonly<Record<string, string | undefined>>,
): RecordOf['api-keys'] {
  return {
    organizationId,
    apiKeySha256,
    role: r === 'admin' ? 'admin' : 'player',
    userId: u,
    client: c,
    expiresAt: e === undefined ? undefined : Number(e),
  };
}
