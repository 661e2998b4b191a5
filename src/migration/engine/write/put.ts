import { normalizedName } from '../../../domain/usernames.ts';
import { encodeReference } from '../../../domain/profile.ts';
import { inBatches } from '../../../lib/collections/batches.ts';
import { newKeyId } from '../../../redis/operator/api-keys.ts';
import type { Outcome } from '../../analysis/outcomes.ts';
import type { Entity, RecordOf } from '../../records/records.ts';
import { organizationSettings, profileFields, settingsArguments } from '../../records/stored.ts';
import type { MigrationContext } from '../context.ts';
import { MigrationError } from '../issues.ts';
import { byOrganization, type Organization } from '../organizations.ts';
import {
  type WriteMode,
  migrateCollections,
  migrateDenylist,
  migrateKeys,
  migrateObjects,
  migrateOrganization,
  migrateProfiles,
} from '../scripts.ts';
import { indexTimeout, withCurrentIndex, waitUntil } from '../current-index.ts';

/** The actual or planned outcome of a record. */
export interface Result {
  outcome: Outcome;
  /** The other user who has the username. */
  holder?: string | undefined;
  /** The user's username in Redis, if it is another one. */
  previous?: string | undefined;
  /** The name, of a profile or of the denylist, is both in use and denied. */
  isDenied?: boolean;
  /** The organization keeps comparing names differently from what the source says. */
  keepsComparison?: boolean;
}

type PutContext = Pick<
  MigrationContext,
  'store' | 'organizations' | 'pictureUrlPrefix' | 'epoch' | 'trustsSource' | 'snapshotAt' | 'marksFrom'
>;

/**
 * Writes records by the scripts, an organization at a time, and returns the outcome of each; `dry` only plans it. Waits
 * if names are held by another operation.
 */
export async function putRecords<E extends Entity>(
  context: PutContext,
  entity: E,
  items: readonly { readonly record: RecordOf[E] }[],
  mode: WriteMode,
): Promise<Result[]> {
  const { organizations } = context;
  return await byOrganization(items, organizations, async (organization, records) => {
    if (mode === 'write' && entity !== 'organizations') await organizations.ensure(organization);
    return await (putters[entity] as Putter<E>)({ ...context, organization, mode }, records);
  });
}

interface Place extends PutContext {
  organization: Organization;
  mode: WriteMode;
}

type Putter<E extends Entity> = (place: Place, records: readonly RecordOf[E][]) => Promise<Result[]>;

const known: ReadonlySet<string> = new Set<Outcome>([
  'created',
  'updated',
  'unchanged',
  'kept',
  'newer',
  'taken',
]);

function outcomeOf(entity: Entity, outcome: Outcome | undefined): Outcome {
  if (outcome !== undefined && known.has(outcome)) return outcome;
  throw new MigrationError(
    `Redis gave an unknown reply for ${entity} (${JSON.stringify(outcome)}): another version of this tool may be running; stop it, then run the same command again`,
  );
}

function resultsOf(entity: Entity, records: readonly unknown[], outcomes: readonly Outcome[]): Result[] {
  return records.map((_, position) => ({ outcome: outcomeOf(entity, outcomes[position]) }));
}

const putOrganizations: Putter<'organizations'> = async (place, records) => {
  const { store, organizations, organization, mode, epoch } = place;
  const results: Result[] = [];
  for (const record of records) {
    const settings = organizationSettings(record);
    const isNew = !organization.exists;
    if (mode === 'write') await organizations.ensure(organization);
    const outcome = isNew
      ? 'created'
      : await migrateOrganization(store, organization.base, epoch, '', mode, ...settingsArguments(settings));
    const keepsComparison = organization.settings.comparison !== settings.comparison;
    results.push({ outcome: outcomeOf('organizations', outcome), keepsComparison });
  }
  return results;
};

/** Writes records that involve no names: by a script that takes rows and returns an outcome for each. */
function putRows<E extends Entity>(
  entity: E,
  script: typeof migrateKeys,
  rowOf: (record: RecordOf[E]) => readonly string[],
): Putter<E> {
  return async ({ store, organization, mode, epoch }, records) => {
    const rows = JSON.stringify(records.map(rowOf));
    return resultsOf(entity, records, await script(store, organization.base, epoch, '', mode, rows));
  };
}

const putKeys = putRows('api-keys', migrateKeys, ({ apiKeySha256, role, userId, client, expiresAt }) => [
  apiKeySha256,
  newKeyId(),
  role,
  userId ?? '',
  client ?? '',
  String(expiresAt ?? ''),
]);

const putDenylist: Putter<'denylist'> = async (place, records) => {
  const { store, organization, mode, epoch, snapshotAt = '', marksFrom } = place;
  const [, outcomes, used] = await withCurrentIndex(place, async () => {
    const { base, index } = organization;
    const rows = JSON.stringify(
      records.map(({ username }) => [username, normalizedName(username, organization.settings.comparison)]),
    );
    return await migrateDenylist(store, base, epoch, index, mode, rows, snapshotAt, marksFrom);
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

const putProfiles: Putter<'profiles'> = async (place, records) => {
  const results: Result[] = [];
  let rows: ProfileRow[] = records.map((record, position) => ({ record, position, seen: '' }));
  for (const deadline = Date.now() + indexTimeout; rows.length > 0;) {
    const again: ProfileRow[] = [];
    let isHeld = false;
    for (const part of inBatches(rows, { length: { of: lengthOf, most: maxCallLength } })) {
      if (await putOnce(place, part, results, again)) isHeld = true;
    }
    if (isHeld) await waitUntil(deadline, place.organization.id);
    rows = again;
  }
  return results;
};

function lengthOf({ record: { profilePictureUrl = '', avatar } }: ProfileRow): number {
  return 200 + profilePictureUrl.length + (avatar?.url?.length ?? 0);
}

/** One call. Rows to be sent again are added to `again`; returns whether to wait before. */
async function putOnce(
  place: Place,
  rows: readonly ProfileRow[],
  results: Result[],
  again: ProfileRow[],
): Promise<boolean> {
  const {
    store,
    organization,
    pictureUrlPrefix,
    mode,
    epoch,
    trustsSource,
    snapshotAt = '',
    marksFrom,
  } = place;
  const trust = trustsSource ? 'trust-source' : '';
  const [, outcomes, names, denied] = await withCurrentIndex(place, async () => {
    const { base, index, namesToCome } = organization;
    const encoded = rows.map(({ record, seen }) => {
      const fields = profileFields(record, pictureUrlPrefix);
      const file = fields.indexOf('pf');
      return [
        record.userId,
        record.username === undefined
          ? ''
          : normalizedName(record.username, organization.settings.comparison),
        fields[fields.length - 1],
        seen,
        seen === '' ? '' : normalizedName(seen, organization.settings.comparison),
        file === -1 ? '' : fields[file + 1],
        ...fields,
      ];
    });
    return await migrateProfiles(
      store,
      base,
      epoch,
      index,
      mode,
      JSON.stringify(encoded),
      namesToCome,
      trust,
      snapshotAt,
      marksFrom,
    );
  });

  let isHeld = false;
  let named = 0;
  for (const [at, { record, position, seen }] of rows.entries()) {
    const outcome = outcomes[at];
    if (outcome === 'renamed') {
      again.push({ record, position, seen: names[named++] ?? '' });
      continue;
    }
    if (outcome === 'staged') {
      again.push({ record, position, seen });
      isHeld = true;
      continue;
    }
    const holder = outcome === 'taken' ? names[named++] : undefined;
    const previous = seen === '' ? undefined : seen;
    results[position] = { outcome: outcomeOf('profiles', outcome), holder, previous };
  }
  for (const at of denied) {
    const result = results[rows[at]?.position ?? -1];
    if (result !== undefined) result.isDenied = true;
  }
  return isHeld;
}

const putters: { readonly [E in Entity]: Putter<E> } = {
  organizations: putOrganizations,
  'api-keys': putKeys,
  objects: putRows('objects', migrateObjects, (record) => [encodeReference(record), record.url]),
  collections: putRows('collections', migrateCollections, (record) => [
    record.userId,
    encodeReference(record),
  ]),
  profiles: putProfiles,
  denylist: putDenylist,
};
