import type { ProfileRecord } from './records.ts';
import type { ObjectReference } from '../../domain/objects.ts';
import { walletForm } from '../../domain/wallets.ts';
import { instant, isPlain, secondsEnd } from './values.ts';

const profileFields: ReadonlySet<string> = new Set([
  'organizationId',
  'userId',
  'username',
  'profilePictureUrl',
  'profilePictureObjectDefinitionId',
  'avatar',
  'evmWalletAddress',
  'evmWalletVerified',
  'updatedAt',
]);

/**
 * Reads the common case, a profile whose every field is already in its final form, at about a third of the cost
 * of going by the rules field by field. Gives undefined where there is anything to weigh; then the rules decide.
 */
export function readPlainProfile(raw: Record<string, unknown>): ProfileRecord | undefined {
  for (const field in raw) if (!profileFields.has(field)) return undefined;
  const { organizationId, userId } = raw;
  if (!isPlain(organizationId) || !isPlain(userId)) return undefined;
  const record: ProfileRecord = { organizationId, userId };

  const username = raw['username'];
  if (username !== undefined) {
    if (!isPlain(username)) return undefined;
    record.username = username;
  }
  const pictureUrl = raw['profilePictureUrl'];
  if (pictureUrl !== undefined) {
    if (!isPlain(pictureUrl)) return undefined;
    record.profilePictureUrl = pictureUrl;
  }
  if (raw['profilePictureObjectDefinitionId'] !== undefined) {
    const reference = plainReference(raw['profilePictureObjectDefinitionId']);
    if (reference === undefined) return undefined;
    record.profilePictureObjectDefinitionId = reference;
  }
  if (raw['avatar'] !== undefined) {
    const reference = plainReference(raw['avatar']);
    if (reference === undefined) return undefined;
    record.avatar = reference;
  }
  const wallet = raw['evmWalletAddress'];
  const verified = raw['evmWalletVerified'];
  if (wallet !== undefined || verified !== undefined) {
    if (typeof wallet !== 'string' || !walletForm.test(wallet) || typeof verified !== 'boolean')
      return undefined;
    record.evmWalletAddress = wallet;
    record.evmWalletVerified = verified;
  }
  if (raw['updatedAt'] !== undefined) {
    const updatedAt = instant(raw['updatedAt']);
    if (typeof updatedAt !== 'number' || updatedAt < secondsEnd) return undefined;
    record.updatedAt = updatedAt;
  }
  return record;
}

function plainReference(value: unknown): ObjectReference | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  for (const field in value) if (field !== 'datasourceId' && field !== 'objectDefinitionId') return undefined;
  const { datasourceId, objectDefinitionId } = value as Partial<Record<keyof ObjectReference, unknown>>;
  return isPlain(datasourceId) && isPlain(objectDefinitionId)
    ? { datasourceId, objectDefinitionId }
    : undefined;
}
