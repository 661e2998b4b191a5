import { encodeReference } from '../../../domain/profile.ts';
import { defaultSettings } from '../../../domain/settings.ts';
import { inBatches } from '../../../lib/collections/batches.ts';
import { newKeyId } from '../../../redis/operator/api-keys.ts';
import { isOutcome, type Outcome } from '../../context/outcomes.ts';
import type { Entry } from '../../analysis/spool.ts';
import type { Entity, RecordOf } from '../../records/records.ts';
import { organizationSettings, profileFields, settingsArguments } from '../../records/stored.ts';
import type { MigrationContext } from '../../context/context.ts';
import { MigrationError } from '../../errors.ts';
import { byOrganization, normalizedIn, type Organization } from '../../context/organizations.ts';
import { dry, migrateProfiles, migrateRecords } from '../scripts.ts';
import { withCurrentIndex } from '../current-index.ts';

/** The actual or planned outcome of a record. */
type Result = Pick<Entry, 'outcome' | 'holder' | 'previous' | 'isDenied'>;

/**
 * Writes records by the scripts, an organization at a time, and returns the outcome of each; in a dry run, what it
 * would be. Waits if names are held by another operation.
 */
export async function putRecords<E extends Entity>(
  context: MigrationContext,
  entity: E,
  items: readonly { readonly record: RecordOf[E] }[],
): Promise<Result[]> {
  return await byOrganization(items, context.organizations, async (organization, records) =>
    context.claim === dry && !organization.exists
      ? records.map(() => ({ outcome: 'created' }))
      : await putters[entity](context, organization, records),
  );
}

type Putter<E extends Entity> = (
  context: MigrationContext,
  organization: Organization,
  records: readonly RecordOf[E][],
) => Promise<Result[]>;

function outcomeOf(entity: Entity, outcome: string | undefined): Outcome {
  if (isOutcome(outcome)) return outcome;
  throw new MigrationError(
    `Redis gave an unknown reply for ${entity} (${JSON.stringify(outcome)}): another version of this tool may be running; stop it, then run the same command again`,
  );
}

/** Puts records by their rows, as apply_records.lua takes them. */
function putRows<E extends Exclude<Entity, 'profiles'>>(
  entity: E,
  rowOf: (record: RecordOf[E], organization: Organization) => string[],
): Putter<E> {
  return async (context, organization, records) => {
    const makeRows = () => records.map((record) => rowOf(record, organization));
    const [, outcomes, used] = await withCurrentIndex(
      context,
      organization,
      migrateRecords,
      makeRows,
      entity,
    );
    const isDenied = new Set(used);
    return records.map((_, at) => ({
      outcome: outcomeOf(entity, outcomes[at]),
      isDenied: isDenied.has(at) || undefined,
    }));
  };
}

interface ProfileRow {
  record: RecordOf['profiles'];
  position: number;
  /** The user's username in Redis, as last seen. */
  seen: string;
}

/** The maximum of text in one call, so that wide rows keep no script busy for long. */
const maxCallLength = 512 * 1024;

const putProfiles: Putter<'profiles'> = async (context, organization, records) => {
  const results: Result[] = [];
  let rows: ProfileRow[] = records.map((record, position) => ({ record, position, seen: '' }));
  while (rows.length > 0) {
    const again: ProfileRow[] = [];
    for (const part of inBatches(rows, { length: { of: lengthOf, most: maxCallLength } })) {
      const [, outcomes, names, denied] = await putOnce(context, organization, part);
      const [nameAt, isDenied] = [new Map(names), new Set(denied)];
      for (const [at, row] of part.entries()) {
        const outcome = outcomes[at];
        if (outcome === 'renamed') {
          again.push({ ...row, seen: nameAt.get(at) ?? '' });
          continue;
        }
        results[row.position] = {
          outcome: outcomeOf('profiles', outcome),
          holder: nameAt.get(at),
          previous: row.seen === '' ? undefined : row.seen,
          isDenied: isDenied.has(at) || undefined,
        };
      }
    }
    rows = again;
  }
  return results;
};

function lengthOf({ record: { profilePictureUrl = '', avatar } }: ProfileRow): number {
  return 200 + profilePictureUrl.length + (avatar?.url?.length ?? 0);
}

async function putOnce(context: MigrationContext, organization: Organization, rows: readonly ProfileRow[]) {
  const { pictureUrlPrefix, trustsSource } = context;
  const makeRows = () =>
    rows.map(({ record, seen }) => [
      record.userId,
      normalizedIn(organization, record.username),
      seen,
      normalizedIn(organization, seen),
      ...profileFields(record, pictureUrlPrefix),
    ]);
  const trust = trustsSource ? 'trust-source' : '';
  const { namesToCome } = organization;
  return await withCurrentIndex(context, organization, migrateProfiles, makeRows, namesToCome, trust);
}

const putters: { readonly [E in Entity]: Putter<E> } = {
  organizations: putRows('organizations', (record) => [
    ...settingsArguments(organizationSettings(record)),
    ...settingsArguments(defaultSettings),
  ]),
  'api-keys': putRows('api-keys', ({ apiKeySha256, role, userId, client, expiresAt }) => [
    apiKeySha256,
    newKeyId(),
    role,
    userId ?? '',
    client ?? '',
    String(expiresAt ?? ''),
  ]),
  objects: putRows('objects', (record) => [encodeReference(record), record.url]),
  collections: putRows('collections', (record) => [record.userId, encodeReference(record)]),
  profiles: putProfiles,
  denylist: putRows('denylist', ({ username }, organization) => [
    username,
    normalizedIn(organization, username),
  ]),
};
