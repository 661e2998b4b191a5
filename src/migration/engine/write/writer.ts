import { encodeReference } from '../../../domain/profile.ts';
import { newKeyId } from '../../../redis/api-keys/api-keys.ts';
import type { Outcome } from '../../analysis/outcomes.ts';
import { indexTimeout, withCurrentIndex, waitUntil } from './current-index.ts';
import { MigrationError } from '../issues.ts';
import { byOrganization, normalizedIn, type Organization, type Organizations } from '../organizations.ts';
import type { Entity, RecordOf } from '../../records/records.ts';
import {
  type Mode,
  migrateCollections,
  migrateDenylist,
  migrateKeys,
  migrateObjects,
  migrateOrganization,
  migrateProfiles,
} from '../scripts.ts';
import { organizationSettings, profileFields, settingsArguments } from '../../records/stored.ts';
import type { RedisClient } from '../../../redis/connection/client.ts';

/** What became of a record, or would. */
export interface Result {
  outcome: Outcome;
  /** The other user who has the username. */
  holder?: string | undefined;
  /** The user's username in Redis, where it is another one. */
  previous?: string | undefined;
  /** The name, of a profile or of the denylist, is both in use and denied. */
  isDenied?: boolean;
  /** The organization goes on comparing names otherwise than the source says. */
  keepsComparison?: boolean;
}

interface Writable<E extends Entity> {
  readonly record: RecordOf[E];
}

export interface Writer {
  /** Writes records by the scripts, and says what became of each; `dry` only says what would. */
  put: <E extends Entity>(entity: E, items: readonly Writable<E>[], mode: Mode) => Promise<Result[]>;
}

interface WriterOptions {
  mediaUrl: string;
  epoch: number;
  /** Also overwrites profiles that are newer in Redis, unless they were changed here. */
  trustsSource: boolean;
  /** When the source's snapshot was opened, by the store's clock in ms; undefined where unknown. */
  snapshotAt?: number | undefined;
  marksFrom: number;
}

/** Text that one call carries at most, so that wide rows keep no script busy for long. */
const maxCallLength = 512 * 1024;

/** Writes records to Redis, an organization at a time, waiting where names are just being decided about. */
export function createWriter(
  store: RedisClient,
  organizations: Organizations,
  options: WriterOptions,
): Writer {
  return {
    put: async (entity, items, mode) =>
      await byOrganization(items, organizations, async (organization, records) => {
        if (mode === 'write' && entity !== 'organizations') await organizations.ensure(organization);
        const place: Place = { store, organizations, organization, mode, ...options };
        return await (putters[entity] as Putter<typeof entity>)(place, records);
      }),
  };
}

interface Place extends WriterOptions {
  store: RedisClient;
  organizations: Organizations;
  organization: Organization;
  mode: Mode;
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
    const [comparison = '', ...rest] = settingsArguments(settings);
    const outcome = isNew
      ? 'created'
      : await migrateOrganization(store, organization.base, epoch, '', mode, comparison, ...rest);
    const keepsComparison = organization.settings.comparison !== settings.comparison;
    results.push({ outcome: outcomeOf('organizations', outcome), keepsComparison });
  }
  return results;
};

const putKeys: Putter<'api-keys'> = async ({ store, organization, mode, epoch }, records) => {
  const rows = records.map((record) => [
    record.apiKeySha256,
    newKeyId(),
    record.role,
    record.userId ?? '',
    record.client ?? '',
    String(record.expiresAt ?? ''),
  ]);
  const outcomes = await migrateKeys(store, organization.base, epoch, '', mode, JSON.stringify(rows));
  return resultsOf('api-keys', records, outcomes);
};

const putObjects: Putter<'objects'> = async ({ store, organization, mode, epoch }, records) => {
  const rows = records.map((record) => [encodeReference(record), record.url]);
  const outcomes = await migrateObjects(store, organization.base, epoch, '', mode, JSON.stringify(rows));
  return resultsOf('objects', records, outcomes);
};

const putCollections: Putter<'collections'> = async ({ store, organization, mode, epoch }, records) => {
  const rows = records.map((record) => [record.userId, encodeReference(record)]);
  const outcomes = await migrateCollections(store, organization.base, epoch, '', mode, JSON.stringify(rows));
  return resultsOf('collections', records, outcomes);
};

const putDenylist: Putter<'denylist'> = async (place, records) => {
  const { store, organization, mode, epoch, snapshotAt, marksFrom } = place;
  const [, outcomes, used] = await withCurrentIndex(place, async () => {
    const rows = records.map(({ username }) => [username, normalizedIn(organization, username)]);
    return await migrateDenylist(
      store,
      organization.base,
      epoch,
      organization.index,
      mode,
      JSON.stringify(rows),
      snapshotAt ?? '',
      marksFrom,
    );
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

const putProfiles: Putter<'profiles'> = async (place, records) => {
  const results: Result[] = [];
  let rows: ProfileRow[] = records.map((record, position) => ({ record, position, seen: '' }));
  for (const deadline = Date.now() + indexTimeout; rows.length > 0;) {
    const again: ProfileRow[] = [];
    let isHeld = false;
    for (const part of partsOf(rows)) if (await putOnce(place, part, results, again)) isHeld = true;
    if (isHeld) await waitUntil(deadline, place.organization.id);
    rows = again;
  }
  return results;
};

/** Cuts rows into parts of bounded size. */
function* partsOf(rows: readonly ProfileRow[]): Generator<ProfileRow[]> {
  let part: ProfileRow[] = [];
  let length = 0;
  for (const row of rows) {
    const { profilePictureUrl = '', avatar } = row.record;
    const own = 200 + profilePictureUrl.length + (avatar?.url?.length ?? 0);
    if (part.length > 0 && length + own > maxCallLength) {
      yield part;
      part = [];
      length = 0;
    }
    part.push(row);
    length += own;
  }
  if (part.length > 0) yield part;
}

/** One call. Rows to be sent once more are added to `again`; returns whether it is better to wait before. */
async function putOnce(
  place: Place,
  rows: readonly ProfileRow[],
  results: Result[],
  again: ProfileRow[],
): Promise<boolean> {
  const { store, organization, mediaUrl, mode, epoch, trustsSource, snapshotAt, marksFrom } = place;
  const [, outcomes, names, denied] = await withCurrentIndex(place, async () => {
    const encoded = rows.map(({ record, seen }) => {
      const fields = profileFields(record, mediaUrl);
      const file = fields.indexOf('pf');
      return [
        record.userId,
        record.username === undefined ? '' : normalizedIn(organization, record.username),
        fields[fields.length - 1],
        seen,
        seen === '' ? '' : normalizedIn(organization, seen),
        file === -1 ? '' : fields[file + 1],
        ...fields,
      ];
    });
    const { base, index, namesToCome } = organization;
    const trust = trustsSource ? 'trust-source' : '';
    return await migrateProfiles(
      store,
      base,
      epoch,
      index,
      mode,
      JSON.stringify(encoded),
      namesToCome,
      trust,
      snapshotAt ?? '',
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
  objects: putObjects,
  collections: putCollections,
  profiles: putProfiles,
  denylist: putDenylist,
};
