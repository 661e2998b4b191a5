import { decodeReference } from '../../../domain/profile.ts';
import { pairsOf } from '../../../lib/collections/pairs.ts';
import { formatInstant } from '../../../lib/iso8601.ts';
import { adoptionsKey } from '../../../redis/keys.ts';
import { identityOf } from '../../analysis/identity.ts';
import type { Entity, RecordOf } from '../../records/records.ts';
import { organizationRecord, organizationSettings, profileFields } from '../../records/stored.ts';
import type { MigrationContext } from '../../context/context.ts';
import { byOrganization, normalizedIn, type Organization } from '../../context/organizations.ts';
import { readProfiles, readRecords } from '../stored/read.ts';

/** A field in which Redis and the source differ; undefined for an absent value. */
export interface Difference {
  field: string;
  redis: unknown;
  source: unknown;
}

/**
 * Compares records that Redis has with the source, field by field; in the records' order. A profile whose fields
 * agree has one difference where the name index does not lead to its user: that of the field `name index`. So has an
 * API key without a public id: that of this.
 */
export async function differencesOf<E extends Entity>(
  context: MigrationContext,
  entity: E,
  items: readonly { readonly record: RecordOf[E] }[],
): Promise<Difference[][]> {
  return await byOrganization(items, context.organizations, async (organization, records) => {
    if (entity === 'profiles')
      return await compareProfiles(context, organization, records as readonly RecordOf['profiles'][]);
    const keys = records.map((record) => identityOf(entity, record, organization));
    const stored = await readRecords[entity](context, organization, keys);
    return records.map((record, position) => {
      const source =
        entity === 'organizations'
          ? organizationRecord(organization.id, organizationSettings(record))
          : record;
      const found = stored[position];
      if (entity === 'api-keys' && found === undefined)
        return [{ field: 'public id', redis: undefined, source: 'k_…' }];
      return compareFields(source, found ?? {});
    });
  });
}

/** Differences as one line for people. */
export function describeDifferences(differences: readonly Difference[]): string {
  return differences
    .map(
      ({ field, redis, source }) => `${field} is ${shown(field, redis)}, should be ${shown(field, source)}`,
    )
    .join('; ');
}

/** The value of a field for people, who know it from the records, not as Redis holds it. */
export function shown(field: string, value: unknown): string {
  if (value === undefined || value === '') return 'absent';
  const isTime = field === 'updatedAt' || field === 'expiresAt';
  const time = isTime ? new Date(Number(value)).getTime() : Number.NaN;
  // What is stored may be damaged.
  if (!Number.isNaN(time)) return formatInstant(time);
  const isReference = field === 'avatar' || field === 'profilePictureObjectDefinitionId';
  return JSON.stringify(isReference && typeof value === 'string' ? decodeReference(value) : value);
}

async function compareProfiles(
  context: MigrationContext,
  organization: Organization,
  records: readonly RecordOf['profiles'][],
): Promise<Difference[][]> {
  const rows = records.map(({ userId, username }) => [userId, normalizedIn(organization, username)] as const);
  const [found, outdatedBefore] = await Promise.all([
    readProfiles(context, organization, rows),
    context.store.hget(adoptionsKey(organization.base), 'unmarked-upload'),
  ]);
  return records.map((record, position) => {
    const { stored = new Map<string, string>(), holder } = found[position] ?? {};
    const source = new Map(pairsOf(profileFields(record, context.pictureUrlPrefix)));
    const [file, copiedFrom] = [stored.get('pf'), stored.get('po')];
    const isOutdated = Number(stored.get('pt') ?? 0) < Number(outdatedBefore);
    // A picture that was copied here is the source's, unless it may be older.
    if (file !== undefined && copiedFrom !== undefined && copiedFrom === source.get('pu') && !isOutdated) {
      source.delete('pu');
      source.set('pf', file);
    }
    const differences = compareFields(named(source), named(stored));
    if (differences.length > 0 || record.username === undefined || holder === record.userId)
      return differences;
    return [{ field: 'name index', redis: holder, source: record.userId }];
  });
}

/** Stored fields by the names that records have for them. */
const profileNames: Readonly<Record<string, string>> = {
  u: 'username',
  pf: 'profilePictureUrl',
  pu: 'profilePictureUrl',
  pr: 'profilePictureObjectDefinitionId',
  ar: 'avatar',
  au: 'avatar.url',
  w: 'evmWalletAddress (verified)',
  wu: 'evmWalletAddress (not verified)',
  t: 'updatedAt',
};

function named(stored: ReadonlyMap<string, string>): object {
  const fields = [...stored].map(([key, value]) => [profileNames[key] ?? '', value] as const);
  return Object.fromEntries(fields.filter(([name]) => name !== ''));
}

function compareFields(wanted: object, stored: object): Difference[] {
  const fields = new Set([...Object.keys(wanted), ...Object.keys(stored)]);
  return [...fields].flatMap((field) => {
    const source = (wanted as Record<string, unknown>)[field];
    const redis = (stored as Record<string, unknown>)[field];
    return source === redis ? [] : [{ field, redis, source }];
  });
}
