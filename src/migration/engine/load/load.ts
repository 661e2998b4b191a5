import { namespaceOf } from '../../analysis/identity.ts';
import { createSeen, type Seen } from '../../../lib/bounded-memory/seen.ts';
import type { Spool } from '../../analysis/spool.ts';
import { inBatches } from '../../../lib/collections/batches.ts';
import { groupBy } from '../../../lib/collections/group-by.ts';
import { replicationIdsOf } from '../../../redis/connection/client.ts';
import { denylistKey } from '../../../redis/keys.ts';
import { registerOrganization } from '../../../redis/organizations.ts';
import type { Entity } from '../../records/records.ts';
import { profileFields, settingsArguments } from '../../records/stored.ts';
import type { LockedContext } from '../../runs/lock.ts';
import { unfinishedLoadsKey } from '../../runs/runs.ts';
import { subjectOf } from '../../context/issues.ts';
import { bucketCount, createNameIndex, type NameClaim } from './name-index.ts';
import { normalizedIn, type Organization } from '../../context/organizations.ts';
import type { RoundKeeper } from '../round-keeper.ts';
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
 * until then everything can be rolled back. Records that compete for an identity or a username, or have a denied one, are
 * set aside, and decided on as in an existing organization.
 */
export type Load = ReturnType<typeof createLoad>;

/** Profiles that are looked up at once. */
const asideAtOnce = 200;

/** Whether records are written while they are read. Settings and API keys are written when all else is in place. */
export function isLoaded(entity: Entity, { isLoading }: Organization): boolean {
  return isLoading && entity !== 'organizations' && entity !== 'api-keys';
}

/**
 * `resumeAt`: so many rows of the source were loaded by an earlier attempt; `servers`: as replicationIdsOf, before anything
 * is loaded.
 */
export function createLoad(
  context: LockedContext,
  keeper: RoundKeeper,
  pacer: Pacer,
  servers: string,
  resumeAt = 0,
) {
  const { store, prefix, epoch, claim, issues, tallies, organizations } = context;
  const load = async (
    { id, base }: Organization,
    kind: 'profiles' | 'names',
    rows: string,
  ): Promise<void> => {
    if ((await migrateLoad(store, base, claim, kind, rows)) === 'lost') await reportLost(context, id);
  };
  const profiles = createRowSender((organization, rows) => load(organization, 'profiles', rows));
  const buckets = createRowSender((organization, rows) => load(organization, 'names', rows));
  const names = createNameIndex(context, buckets);
  /** The denylists, as far as they were read. A filter: it may take another name for one of theirs. */
  const denied = createSeen();

  const begin = async (organization: Organization): Promise<void> => {
    await keeper.begin();
    await beginLoad(context, organization);
    organization.isLoading = true;
  };

  /** Those of these profiles whose usernames are denied: by then, the denylists are in Redis. */
  const findDenied = async (items: readonly Item<'profiles'>[]): Promise<ReadonlySet<Item>> => {
    const mayBe = items.filter(({ organization, record }) =>
      denied.has(organization.id, normalizedIn(organization, record.username)),
    );
    const found = await Promise.all(
      mayBe.map(({ organization, record }) => {
        const list = denylistKey(organization.base, organization.index);
        return store.hexists(list, normalizedIn(organization, record.username));
      }),
    );
    return new Set(mayBe.filter((_, position) => found[position] === 1));
  };

  /** Keeps no item alive while it waits: collecting garbage that has lived that long would cost more than all the rest. */
  const takeProfiles = (
    items: readonly Item<'profiles'>[],
    aside: Spool,
    areDenied?: ReadonlySet<Item>,
  ): Promise<void> => {
    for (const item of items) {
      const { record, organization, seq, isRepeated } = item;
      const { userId, username } = record;
      const name = normalizedIn(organization, username);
      const isDenied = areDenied?.has(item) === true || undefined;
      const isWritten = !isRepeated && isDenied === undefined;
      const where = placeOf(item);
      names.add({ organization, name, userId, seq, where, isWritten });
      if (!isWritten) {
        aside.add({ seq, entity: 'profiles', where, outcome: 'created', isRepeated, isDenied, record });
        continue;
      }
      tallies.add('profiles', organization.id, 'created');
      if (seq >= resumeAt)
        profiles.add(organization, profileFields(record, context.pictureUrlPrefix, [userId]));
    }
    return profiles.room();
  };

  /** Takes back profiles that were written. */
  const setAside = async (claims: readonly NameClaim[], aside: Spool): Promise<void> => {
    // From here on a record of these users would look like their first one, so this cannot be resumed.
    await keeper.discardLoaded();
    for (const [id, own] of groupBy(claims, ({ organization }) => organization.id)) {
      const organization = await organizations.find(id);
      const users = own.map(({ userId }) => userId);
      const found = await readRecords.profiles(context, organization, users);
      await load(organization, 'profiles', JSON.stringify(users.flatMap((userId) => [1, userId])));
      for (const [position, { seq, where }] of own.entries()) {
        const record = found[position];
        if (record === undefined) return await reportLost(context, id);
        aside.add({ seq, entity: 'profiles', where, outcome: 'created', record });
        tallies.add('profiles', id, 'created', -1);
      }
    }
  };

  const takeOthers = async (entity: Entity, items: readonly Item[]): Promise<void> => {
    // Also those that were written by an earlier attempt: it changes nothing.
    const results = await putRecords(context, entity, items);
    for (const [position, item] of items.entries()) {
      const { organization, isRepeated, record } = item;
      const isDuplicate = isRepeated && results[position]?.outcome !== 'created';
      tallies.add(entity, organization.id, isDuplicate ? 'duplicate' : 'created');
      if (isDuplicate) {
        const detail = 'has the same identity as an earlier record, comes later, and wins';
        issues.add({ entity, reason: 'duplicate', where: placeOf(item), detail, ...subjectOf(record) });
      }
      if (entity === 'denylist')
        denied.add(organization.id, normalizedIn(organization, subjectOf(record).username));
    }
  };

  return {
    /** Begins to load an organization that Redis does not know. */
    begin: (organization: Organization): Promise<void> | undefined =>
      organization.exists || organization.isLoading ? undefined : begin(organization),
    /** Writes records of organizations that are being loaded, or sets them aside. Resolves when there is room for more. */
    take: async (entity: Entity, items: readonly Item[], aside: Spool): Promise<void> => {
      if (items.length === 0) return;
      await pacer.wait(items.filter(({ seq }) => seq >= resumeAt).length);
      // Records that were not accepted must not count as loaded.
      context.signal.throwIfAborted();
      if (entity !== 'profiles') return takeOthers(entity, items);
      const own = items as Item<'profiles'>[];
      return takeProfiles(own, aside, denied.isEmpty ? undefined : await findDenied(own));
    },
    /** Has the keeper save that records were accepted, once those to be loaded are written. */
    accepted: (rows: number, entity: Entity, share: number): void =>
      keeper.accepted(rows, entity, share, profiles.flush),
    /** Resolves when all accepted records are written. */
    flush: profiles.flush,
    /** After reading: writes the name index, and sets aside records whose identities or names other records want. */
    index: async (repeated: Seen, aside: Spool): Promise<void> => {
      await profiles.flush();
      const isContested = ({ organization, userId }: NameClaim): boolean =>
        !repeated.isEmpty && repeated.has(namespaceOf('profiles', organization.id), userId);
      for await (const contested of names.write(isContested))
        for (const some of inBatches(contested, { size: asideAtOnce })) await setAside(some, aside);
    },
    /** Puts the organizations into service, unless Redis may have lost some of what was loaded. */
    finish: async (): Promise<void> => {
      const loading = organizations.all().filter(({ isLoading }) => isLoading);
      const [one] = loading;
      if (one !== undefined && (await replicationIdsOf(store)) !== servers) await reportLost(context, one.id);
      for (const organization of loading) {
        const { id, base } = organization;
        await context.beforeChange();
        await registerOrganization(store, prefix, id);
        const settings = settingsArguments(organization.settings);
        const count = bucketCount(organization.namesToCome);
        const outcome = await migrateFinishLoad(store, base, epoch, '', claim, count, ...settings);
        if (outcome === 'lost') await reportLost(context, id);
        organization.isLoading = false;
        await organizations.refresh(id);
        await store.srem(unfinishedLoadsKey(prefix, context.lock.run), id);
      }
    },
    /** Resolves when nothing is being written any more, whatever became of it. */
    settle: async (): Promise<void> => {
      await profiles.settle();
      await buckets.settle();
    },
  };
}
