import { normalizedName } from '../../../domain/usernames.ts';
import type { Outcome } from '../../analysis/outcomes.ts';
import { namespaceOf } from '../../analysis/identity.ts';
import { createPlaces } from './places.ts';
import type { Seen } from '../../analysis/seen.ts';
import type { Spool } from '../../analysis/spool.ts';
import { inBatches } from '../../../lib/collections/batches.ts';
import { groupBy } from '../../../lib/collections/group-by.ts';
import { profileKey } from '../../../redis/keys.ts';
import { registerOrganization } from '../../../redis/organizations.ts';
import type { Entity, RecordOf } from '../../records/records.ts';
import { profileFields, settingsArguments } from '../../records/stored.ts';
import type { RunLock } from '../../runs/lock.ts';
import { unfinishedLoadsKey } from '../../runs/runs.ts';
import type { MigrationContext } from '../context.ts';
import { bucketCount, createNameIndex, type NameClaim } from './name-index.ts';
import type { Organization } from '../organizations.ts';
import type { Pacer } from '../write/pacer.ts';
import { putRecords } from '../write/put.ts';
import { placeOf, type Item } from '../read/reading.ts';
import { createRowSender } from './row-sender.ts';
import { migrateFinishLoad, migrateLoad } from '../scripts.ts';
import { beginLoad, reportLost } from './unfinished.ts';
import { readRecords } from '../stored/read.ts';

/**
 * Organizations that Redis does not know yet are loaded while the source is read: nobody else can reach them, so their
 * profiles are written without reading what is there. An organization exists once it has settings, and these come last;
 * until then everything can be rolled back. Records that compete for an identity or a username are set aside, and
 * decided on as in an existing organization.
 */
export interface Load {
  /** Begins to load an organization that Redis does not know. */
  begin: (organization: Organization) => Promise<void> | undefined;
  /** Writes records of organizations that are being loaded, or sets them aside. Resolves when there is room for more. */
  take: (entity: Entity, items: readonly Item[], aside: Spool) => Promise<void>;
  /** Resolves when all accepted records are written. */
  flush: () => Promise<void>;
  /** After reading: writes the name index, and sets aside records whose names other records want. */
  index: (repeated: Seen, aside: Spool) => Promise<void>;
  /** Puts the organizations into service. */
  finish: () => Promise<void>;
  /** Resolves when nothing is being written any more, whatever became of it. */
  settle: () => Promise<void>;
}

/** Entities that are written while they are read. Settings and API keys are written when all else is in place. */
const loaded: ReadonlySet<Entity> = new Set<Entity>(['objects', 'denylist', 'profiles', 'collections']);

/** Profiles that are looked up at once. */
const asideAtOnce = 200;

export function isLoaded(entity: Entity, { isLoading }: Organization): boolean {
  return isLoading && loaded.has(entity);
}

export interface LoadOptions {
  lock: RunLock;
  /** Rows of the source that an earlier attempt has loaded. */
  resumeAt: number;
  pacer: Pacer;
  /** Called before the first organization is begun. */
  onBegin: () => Promise<void>;
  /** Called before something that was loaded is removed again. */
  onDiscard: () => Promise<void>;
}

export function createLoad(
  context: MigrationContext,
  { lock, resumeAt, pacer, onBegin, onDiscard }: LoadOptions,
): Load {
  const { store, prefix, epoch, issues, tallies, pictureUrlPrefix, organizations, workspace, signal } =
    context;
  const load = async (
    { id, base }: Organization,
    kind: 'profiles' | 'names',
    rows: string,
  ): Promise<void> => {
    if ((await migrateLoad(store, base, lock.claim, kind, rows)) === 'lost')
      await reportLost(context, lock, id);
  };
  const profiles = createRowSender((organization, rows) => load(organization, 'profiles', rows));
  const buckets = createRowSender((organization, rows) => load(organization, 'names', rows));
  const names = createNameIndex(context, buckets);
  const places = createPlaces(workspace);
  const loading = () => organizations.all().filter(({ isLoading }) => isLoading);

  const begin = async (organization: Organization): Promise<void> => {
    await onBegin();
    await beginLoad(context, lock, organization);
    organization.isLoading = true;
  };

  const duplicate = (entity: Entity, item: Item): void => {
    const { organizationId, userId, username } = item.record as Partial<RecordOf['profiles']>;
    const detail = 'has the same identity as an earlier record, comes later, and holds';
    const where = placeOf(item);
    tallies.add(entity, organizationId, 'duplicate');
    issues.add({ entity, reason: 'duplicate', where, detail, organizationId, userId, username });
  };

  /** Holds none of the items while it waits: what lives on until then costs more to collect than all else. */
  const takeProfiles = (items: readonly Item<'profiles'>[], aside: Spool): Promise<void> => {
    const [first] = items;
    if (first !== undefined) places.add(first.seq - first.index, first.batch);
    for (const item of items) {
      const { record, organization, seq, isRepeated } = item;
      const { userId, username } = record;
      const name = username === undefined ? '' : normalizedName(username, organization.settings.comparison);
      names.add({ organization, name, userId, seq, isWritten: !isRepeated });
      if (isRepeated) {
        const where = placeOf(item);
        aside.add({ seq, entity: 'profiles', where, outcome: 'created', isRepeated, record });
        continue;
      }
      tallies.add('profiles', organization.id, 'created');
      if (seq >= resumeAt) profiles.add(organization, profileFields(record, pictureUrlPrefix, [userId]));
    }
    return profiles.room();
  };

  /** Takes back profiles that were written. */
  const setAside = async (claims: readonly NameClaim[], aside: Spool): Promise<void> => {
    // From here on a record of these users would look like their first one, so this cannot be resumed.
    await onDiscard();
    for (const [id, own] of groupBy(claims, ({ organization }) => organization.id)) {
      const organization = await organizations.find(id);
      const users = own.map(({ userId }) => userId);
      const found = await readRecords(context, 'profiles', organization, users);
      await load(organization, 'profiles', JSON.stringify(users.flatMap((userId) => [1, userId])));
      for (const [position, { seq }] of own.entries()) {
        const where = places.where(seq);
        const record = found[position];
        if (record === undefined) return await reportLost(context, lock, id);
        aside.add({ seq, entity: 'profiles', where, outcome: 'created', record });
        tallies.add('profiles', id, 'created', -1);
      }
    }
  };

  /** Reports usernames as they were given; that of a repeated record, which is not stored, as it is compared. */
  const reportDenied = async (claims: readonly NameClaim[]): Promise<void> => {
    const stored = await Promise.all(
      claims.map(({ organization, userId }) => store.hget(profileKey(organization.base, userId), 'u')),
    );
    for (const [position, { organization, userId, seq, name, isWritten }] of claims.entries()) {
      const username = (isWritten && stored[position]) || name;
      const where = places.where(seq);
      const detail = `username ${JSON.stringify(username)} is on the denylist: it is kept`;
      const issue = { entity: 'profiles', reason: 'denied-name-in-use', where, detail } as const;
      issues.add({ ...issue, organizationId: organization.id, userId, username });
    }
  };

  const takeOthers = async (entity: Entity, items: readonly Item[]): Promise<void> => {
    const fresh = items.filter(({ seq }) => seq >= resumeAt);
    const results = await putRecords(context, entity, fresh);
    const outcomes = new Map<Item, Outcome | undefined>();
    for (const [position, item] of fresh.entries()) outcomes.set(item, results[position]?.outcome);
    for (const item of items) {
      const { organization, isRepeated } = item;
      if (isRepeated && outcomes.get(item) !== 'created') duplicate(entity, item);
      else tallies.add(entity, organization.id, 'created');
      if (entity !== 'denylist') continue;
      const { username } = item.record as RecordOf['denylist'];
      names.deny(organization, normalizedName(username, organization.settings.comparison));
    }
  };

  return {
    begin: (organization) =>
      organization.exists || organization.isLoading ? undefined : begin(organization),
    take: (entity, items, aside) => {
      // Rejects rather than throws: whoever reads waits for the chunks before this one.
      const takeNow = async (): Promise<void> => {
        // Records that were not accepted must not count as loaded.
        signal.throwIfAborted();
        return entity === 'profiles'
          ? takeProfiles(items as Item<'profiles'>[], aside)
          : takeOthers(entity, items);
      };
      const waiting = pacer.wait(items.length);
      return waiting === undefined ? takeNow() : waiting.then(takeNow);
    },
    flush: profiles.flush,
    index: async (repeated, aside) => {
      await profiles.flush();
      await names.write({
        isContested: ({ organization, userId }) =>
          !repeated.isEmpty && repeated.has(namespaceOf('profiles', organization.id), userId),
        onContested: async (claims) => {
          const written = claims.filter(({ isWritten }) => isWritten);
          for (const some of inBatches(written, { size: asideAtOnce })) await setAside(some, aside);
        },
        onDenied: async (claims) => {
          for (const some of inBatches(claims, { size: asideAtOnce })) await reportDenied(some);
        },
      });
    },
    finish: async () => {
      for (const organization of loading()) {
        const { id, base, namesToCome, settings } = organization;
        await registerOrganization(store, prefix, id);
        const outcome = await migrateFinishLoad(
          store,
          base,
          epoch,
          '',
          lock.claim,
          bucketCount(namesToCome),
          ...settingsArguments(settings),
        );
        if (outcome === 'lost') await reportLost(context, lock, id);
        organization.isLoading = false;
        await organizations.refresh(id);
        await store.srem(unfinishedLoadsKey(prefix, lock.run), id);
      }
    },
    settle: async () => {
      await profiles.settle();
      await buckets.settle();
    },
  };
}
