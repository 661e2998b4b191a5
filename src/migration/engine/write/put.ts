import { encodeReference } from '../../../domain/profile.ts';
import { defaultSettings } from '../../../domain/settings.ts';
import { inBatches } from '../../../lib/collections/batches.ts';
import { newKeyId } from '../../../redis/operator/api-keys.ts';
import { isOutcome, type Outcome } from '../../analysis/outcomes.ts';
import type { Entity, RecordOf } from '../../records/records.ts';
import { organizationSettings, profileFields, settingsArguments } from '../../records/stored.ts';
import type { MigrationContext } from '../context.ts';
import { MigrationError } from '../issues.ts';
import { byOrganization, normalizedIn, type Organization } from '../organizations.ts';
import { dry, migrateDenylist, migrateProfiles, migrateRecords, type PlainEntity } from '../scripts.ts';
import { indexTimeout, withCurrentIndex, waitForNames } from '../current-index.ts';

/** The actual or planned outcome of a record. */
export interface Result {
  outcome: Outcome;
  /** The other user who has the username. */
  holder?: string | undefined;
  /** The user's username in Redis, if it is another one. */
  previous?: string | undefined;
  /** The name, of a profile or of the denylist, is both in use and denied. */
  isDenied?: true | undefined;
}

/**
 * Writes records by the scripts, an organization at a time, and returns the outcome of each; in a dry run, what it
 * would be. Waits if names are held by another operation.
 */
export async function putRecords<E extends Entity>(
  context: MigrationContext,
  entity: E,
  items: readonly { readonly record: RecordOf[E] }[],
): Promise<Result[]> {
  const put = putters[entity] as Putter<E>;
  return await byOrganization(items, context.organizations, async (organization, records) =>
    context.claim === dry && !organization.exists
      ? records.map(() => ({ outcome: 'created' }))
      : await put({ ...context, organization }, records),
  );
}

type Destination = MigrationContext & { organization: Organization };

type Putter<E extends Entity> = (
  destination: Destination,
  records: readonly RecordOf[E][],
) => Promise<Result[]>;

function outcomeOf(entity: Entity, outcome: string | undefined): Outcome {
  if (isOutcome(outcome)) return outcome;
  throw new MigrationError(
    `Redis gave an unknown reply for ${entity} (${JSON.stringify(outcome)}): another version of this tool may be running; stop it, then run the same command again`,
  );
}

function resultsOf(entity: Entity, records: readonly unknown[], outcomes: readonly Outcome[]): Result[] {
  return records.map((_, position) => ({ outcome: outcomeOf(entity, outcomes[position]) }));
}

/** Puts records by their rows, as apply_records.lua takes them. */
function putPlain<E extends PlainEntity>(entity: E, rowOf: (record: RecordOf[E]) => string[]): Putter<E> {
  return async ({ store, organization, claim, epoch }, records) => {
    const rows = JSON.stringify(records.map(rowOf));
    const outcomes = await migrateRecords(store, organization.base, epoch, '', claim, entity, rows);
    return resultsOf(entity, records, outcomes);
  };
}

const putDenylist: Putter<'denylist'> = async (destination, records) => {
  const { store, organization, claim, epoch, snapshotAt = '', marksFrom } = destination;
  const [, outcomes, used] = await withCurrentIndex(destination, async () => {
    const { base, index } = organization;
    const rows = JSON.stringify(
      records.map(({ username }) => [username, normalizedIn(organization, username)]),
    );
    return await migrateDenylist(store, base, epoch, index, claim, rows, snapshotAt, marksFrom);
  });
  const results = resultsOf('denylist', records, outcomes);
  for (const position of used) if (results[position] !== undefined) results[position].isDenied = true;
  return results;
};

interface ProfileRow {
  record: RecordOf['profiles'];
  position: number;
  /** The user's username in Redis, as last seen. */
  seen: string;
}

/** The maximum of text in one call, so that wide rows keep no script busy for long. */
const maxCallLength = 512 * 1024;

const putProfiles: Putter<'profiles'> = async (destination, records) => {
  const results: Result[] = [];
  let rows: ProfileRow[] = records.map((record, position) => ({ record, position, seen: '' }));
  for (const deadline = Date.now() + indexTimeout; rows.length > 0;) {
    const again: ProfileRow[] = [];
    let isHeld = false;
    for (const part of inBatches(rows, { length: { of: lengthOf, most: maxCallLength } })) {
      const [, outcomes, names, denied] = await putOnce(destination, part);
      const [name, isDenied] = [names.values(), new Set(denied)];
      for (const [at, row] of part.entries()) {
        const outcome = outcomes[at];
        if (outcome === 'renamed') {
          again.push({ ...row, seen: name.next().value ?? '' });
        } else if (outcome === 'staged') {
          again.push(row);
          isHeld = true;
        } else {
          results[row.position] = {
            outcome: outcomeOf('profiles', outcome),
            holder: outcome === 'taken' ? name.next().value : undefined,
            previous: row.seen === '' ? undefined : row.seen,
            isDenied: isDenied.has(at) || undefined,
          };
        }
      }
    }
    if (isHeld) await waitForNames(deadline, destination.organization.id);
    rows = again;
  }
  return results;
};

function lengthOf({ record: { profilePictureUrl = '', avatar } }: ProfileRow): number {
  return 200 + profilePictureUrl.length + (avatar?.url?.length ?? 0);
}

async function putOnce(destination: Destination, rows: readonly ProfileRow[]) {
  const { store, organization, claim, epoch, snapshotAt = '', marksFrom } = destination;
  const trust = destination.trustsSource ? 'trust-source' : '';
  return await withCurrentIndex(destination, async () => {
    const { base, index, namesToCome } = organization;
    const encoded = rows.map(({ record, seen }) => {
      const fields = profileFields(record, destination.pictureUrlPrefix);
      const file = fields.indexOf('pf');
      return [
        record.userId,
        normalizedIn(organization, record.username),
        fields[fields.length - 1],
        seen,
        normalizedIn(organization, seen),
        file === -1 ? '' : fields[file + 1],
        ...fields,
      ];
    });
    const rest = [namesToCome, trust, snapshotAt, marksFrom] as const;
    return await migrateProfiles(store, base, epoch, index, claim, JSON.stringify(encoded), ...rest);
  });
}

const putters: { readonly [E in Entity]: Putter<E> } = {
  organizations: putPlain('organizations', (record) => [
    ...settingsArguments(organizationSettings(record)),
    ...settingsArguments(defaultSettings),
  ]),
  'api-keys': putPlain('api-keys', ({ apiKeySha256, role, userId, client, expiresAt }) => [
    apiKeySha256,
    newKeyId(),
    role,
    userId ?? '',
    client ?? '',
    String(expiresAt ?? ''),
  ]),
  objects: putPlain('objects', (record) => [encodeReference(record), record.url]),
  collections: putPlain('collections', (record) => [record.userId, encodeReference(record)]),
  profiles: putProfiles,
  denylist: putDenylist,
};
