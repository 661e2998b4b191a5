import { encodeReference } from '../../domain/objects.ts';
import { newKeyId } from '../../redis/api-keys.ts';
import type { Item } from '../sources/chunks.ts';
import { indexTimeout, withCurrentIndex, waitUntil } from './current-index.ts';
import { groupBy } from '../../lib/group-by.ts';
import { normalizedIn, type Organization, type Organizations } from './organizations.ts';
import type { Entity } from '../records/records.ts';
import type { MigrationStore, Mode } from './scripts.ts';
import { organizationSettings, profileFields, settingsArguments } from '../records/stored.ts';

/** What became of a record, or would. */
type Outcome = 'created' | 'updated' | 'unchanged' | 'kept' | 'newer' | 'taken';

const outcomeOf: Readonly<Record<string, Outcome>> = {
  c: 'created',
  u: 'updated',
  '=': 'unchanged',
  k: 'kept',
  n: 'newer',
  t: 'taken',
};

/** Told of the records whose outcome alone does not say all. */
export interface Notes {
  /** Another user has the username. */
  onTaken?: (item: Item<'profiles'>, holder: string) => void;
  /** The user has another username in Redis, which would become free. */
  onRename?: (item: Item<'profiles'>, username: string, form: string) => void;
  /** The name, of a profile or of the denylist, is both in use and denied. */
  onDenied?: (entity: 'profiles' | 'denylist', item: Item) => void;
  /** The organization goes on comparing names otherwise than the source says. */
  onComparisonKept?: (item: Item<'organizations'>) => void;
  onOutcome?: (item: Item, outcome: Outcome) => void;
}

export type Tally = Record<Outcome, number>;

export function emptyTally(): Tally {
  return { created: 0, updated: 0, unchanged: 0, kept: 0, newer: 0, taken: 0 };
}

export interface Writer {
  /** Brings records in, by the scripts; `dry` only tells what would become of them. */
  put: <E extends Entity>(entity: E, items: readonly Item<E>[], mode: Mode, notes?: Notes) => Promise<Tally>;
}

/** Brings records into Redis, an organization at a time, waiting where names are just being decided about. */
export function createWriter(store: MigrationStore, organizations: Organizations, mediaUrl: string): Writer {
  return {
    put: async (entity, items, mode, notes = {}) => {
      const tally = emptyTally();
      for (const [id, own] of groupBy(items, ({ record }) => record.organizationId)) {
        const organization = await organizations.find(id);
        if (mode === 'write' && entity !== 'organizations') await organizations.ensure(organization);
        const count = (item: Item, letter: string): void => {
          const outcome = outcomeOf[letter] ?? 'kept';
          tally[outcome] += 1;
          notes.onOutcome?.(item, outcome);
        };
        const place: Place = { store, organizations, organization, mediaUrl, mode, notes, count };
        await (putters[entity] as Putter<typeof entity>)(place, own);
      }
      return tally;
    },
  };
}

interface Place {
  store: MigrationStore;
  organizations: Organizations;
  organization: Organization;
  mediaUrl: string;
  mode: Mode;
  notes: Notes;
  count: (item: Item, letter: string) => void;
}

type Putter<E extends Entity> = (place: Place, items: readonly Item<E>[]) => Promise<void>;

const putOrganizations: Putter<'organizations'> = async (place, items) => {
  const { store, organizations, organization, mode, notes, count } = place;
  for (const item of items) {
    const settings = organizationSettings(item.record);
    const isNew = !organization.exists;
    await organizations.plan(organization.id, settings);
    if (mode === 'write') await organizations.ensure(organization);
    const [comparison = '', ...rest] = settingsArguments(settings);
    const letter = isNew
      ? 'c'
      : await store.migrateOrganization(organization.base, mode, comparison, ...rest);
    if (organization.settings.comparison !== settings.comparison) notes.onComparisonKept?.(item);
    count(item, letter === 'x' ? 'u' : letter);
  }
};

const putKeys: Putter<'api-keys'> = async ({ store, organization, mode, count }, items) => {
  const rows = items.map(({ record }) => [
    record.apiKeySha256,
    newKeyId(),
    record.role,
    record.userId ?? '',
    record.client ?? '',
    String(record.expiresAt ?? ''),
  ]);
  const outcomes = await store.migrateKeys(organization.base, mode, JSON.stringify(rows));
  for (const [position, item] of items.entries()) count(item, outcomes.charAt(position));
};

const putObjects: Putter<'objects'> = async ({ store, organization, mode, count }, items) => {
  const rows = items.map(({ record }) => [encodeReference(record), record.url]);
  const outcomes = await store.migrateObjects(organization.base, mode, JSON.stringify(rows));
  for (const [position, item] of items.entries()) count(item, outcomes.charAt(position));
};

const putCollections: Putter<'collections'> = async ({ store, organization, mode, count }, items) => {
  const rows = items.map(({ record }) => [record.userId, encodeReference(record)]);
  const outcomes = await store.migrateCollections(organization.base, mode, JSON.stringify(rows));
  for (const [position, item] of items.entries()) count(item, outcomes.charAt(position));
};

const putDenylist: Putter<'denylist'> = async (place, items) => {
  const { store, organization, mode, notes, count } = place;
  const reply = await withCurrentIndex(place, async () => {
    const rows = items.map(({ record }) => [record.username, normalizedIn(organization, record.username)]);
    return await store.migrateDenylist(organization.base, mode, organization.index, JSON.stringify(rows));
  });
  for (const [position, item] of items.entries()) count(item, reply[1].charAt(position));
  for (const position of reply[2]) {
    const item = items[position];
    if (item !== undefined) notes.onDenied?.('denylist', item);
  }
};

interface ProfileRow {
  item: Item<'profiles'>;
  /** The user's username in Redis, as last seen. */
  seen: string;
}

const putProfiles: Putter<'profiles'> = async (place, items) => {
  let rows: ProfileRow[] = items.map((item) => ({ item, seen: '' }));
  for (const deadline = Date.now() + indexTimeout; rows.length > 0;) {
    const again: ProfileRow[] = [];
    if (await putOnce(place, rows, again)) await waitUntil(deadline, place.organization.id);
    rows = again;
  }
};

/** One call. Rows to come back with are added to `again`; says whether it is better to wait before. */
async function putOnce(place: Place, rows: readonly ProfileRow[], again: ProfileRow[]): Promise<boolean> {
  const { store, organization, mediaUrl, mode, notes, count } = place;
  const [, outcomes, names, denied] = await withCurrentIndex(place, async () => {
    const encoded = rows.map(({ item: { record }, seen }) => {
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
    return await store.migrateProfiles(base, index, mode, JSON.stringify(encoded), namesToCome);
  });

  let isHeld = false;
  let named = 0;
  for (const [position, { item, seen }] of rows.entries()) {
    const letter = outcomes.charAt(position);
    if (letter === 'r') {
      again.push({ item, seen: names[named++] ?? '' });
      continue;
    }
    if (letter === 'w') {
      again.push({ item, seen });
      isHeld = true;
      continue;
    }
    if (seen !== '' && (letter === 'u' || letter === 't')) {
      notes.onRename?.(item, seen, normalizedIn(organization, seen));
    }
    if (letter === 't') notes.onTaken?.(item, names[named++] ?? '');
    count(item, letter);
  }
  for (const position of denied) {
    const row = rows[position];
    if (row !== undefined) notes.onDenied?.('profiles', row.item);
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
