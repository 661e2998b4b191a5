import type { Outcome, Tallies } from '../../analysis/outcomes.ts';
import { groupBy } from '../../../lib/group-by.ts';
import { loadingKey, profileKey } from '../../../redis/keys.ts';
import { registerOrganization } from '../../../redis/organizations.ts';
import { scanKeys } from '../../../redis/connection/scan.ts';
import type { Entity, RecordOf } from '../../records/records.ts';
import { profileFields, settingsArguments } from '../../records/stored.ts';
import { runKey } from '../../runs/runs.ts';
import type { OnConflict } from '../../sources/scope.ts';
import type { MigrationContext } from '../context.ts';
import { MigrationError } from '../issues.ts';
import { bucketCount, createNameIndex } from './name-index.ts';
import { normalizedIn, type Organization } from '../organizations.ts';
import type { Pacer } from '../write/pacer.ts';
import type { ReadItem } from '../read/reading.ts';

/**
 * Organizations that Redis does not know yet are loaded while the source is read: their profiles by plain pipelined
 * commands, without any script, since nobody else can reach them. An organization exists once it has settings, and
 * these come last; until then everything can be rolled back.
 */
export interface Load {
  /** Begins to load an organization that Redis does not know. */
  claim: (organization: Organization) => Promise<void> | undefined;
  /** Writes records of organizations that are being loaded. */
  take: (entity: Entity, items: readonly ReadItem[]) => Promise<void>;
  /** After the reading: writes the name index, and decides who gets a name that several want. */
  index: (onConflict: OnConflict) => Promise<void>;
  /** Puts the organizations into service. */
  finish: () => Promise<void>;
}

/** Entities that are written while they are read. Settings and API keys are written when all else is in place. */
const loaded: ReadonlySet<Entity> = new Set<Entity>(['objects', 'denylist', 'profiles', 'collections']);

export function isLoaded(entity: Entity, { isLoading }: Organization): boolean {
  return isLoading && loaded.has(entity);
}

export interface LoadOptions {
  run: string;
  tallies: Tallies;
  /** Rows of the source that an earlier attempt has loaded. */
  resumeAt: number;
  pacer: Pacer;
  /** Called before the first organization is begun. */
  onBegin: () => Promise<void>;
  /** Called before something that was loaded is removed again. */
  onDiscard: () => Promise<void>;
}

function stagedKey(prefix: string, run: string): string {
  return `${runKey(prefix, run)}:loading`;
}

export function createLoad(
  context: MigrationContext,
  { run, tallies, resumeAt, pacer, onBegin, onDiscard }: LoadOptions,
): Load {
  const { store, prefix, issues, writer, mediaUrl, organizations, signal } = context;
  const names = createNameIndex(context);
  const loading = () => organizations.all().filter(({ isLoading }) => isLoading);

  const begin = async (organization: Organization): Promise<void> => {
    await onBegin();
    await store.sadd(stagedKey(prefix, run), organization.id);
    const isNew = await store.set(loadingKey(organization.base), run, 'NX');
    const owner = isNew === 'OK' ? run : await store.get(loadingKey(organization.base));
    if (owner !== run) {
      await store.srem(stagedKey(prefix, run), organization.id);
      throw new MigrationError(
        `organization ${JSON.stringify(organization.id)} is being loaded by run ${String(owner)}: wait for its end, or finish it by its own apply`,
      );
    }
    organization.isLoading = true;
  };

  const duplicate = (entity: Entity, { item }: ReadItem, holds: boolean): void => {
    const { organizationId, userId, username } = item.record as Partial<RecordOf['profiles']>;
    const detail = holds
      ? 'has the same identity as an earlier record, is newer or comes later, and holds'
      : 'has the same identity as an earlier record, which is newer and holds';
    tallies.add(entity, organizationId, 'duplicate');
    issues.add({
      entity,
      reason: 'duplicate',
      where: item.where(),
      detail,
      organizationId,
      userId,
      username,
    });
  };

  /** Writes profiles whole; what an earlier attempt has left of one is overwritten. */
  const writeProfiles = async (items: readonly ReadItem<'profiles'>[]): Promise<void> => {
    const groups = store.isCluster ? groupBy(items, ({ organization }) => organization.id).values() : [items];
    for (const group of groups) {
      const rows = group.map(({ organization, item }) => ({
        key: profileKey(organization.base, item.record.userId),
        fields: profileFields(item.record, mediaUrl),
      }));
      const pipeline = store.pipeline();
      for (const { key, fields } of rows) pipeline.hset(key, ...fields);
      const replies = (await pipeline.exec()) ?? [];
      for (const [position, { key, fields }] of rows.entries()) {
        const [error, added] = replies[position] ?? [new Error('a reply is missing'), undefined];
        if (error !== null) throw error;
        if (added === fields.length / 2) continue;
        await store
          .multi()
          .del(key)
          .hset(key, ...fields)
          .exec();
      }
    }
  };

  const takeProfiles = async (items: readonly ReadItem<'profiles'>[]): Promise<void> => {
    const fresh = items.filter(({ isRepeated, seq }) => !isRepeated && seq >= resumeAt);
    const writing = writeProfiles(fresh);
    for (const each of items) {
      if (each.isRepeated) continue;
      tallies.add('profiles', each.organization.id, 'created');
      const claiming = claimName(each);
      if (claiming !== undefined) await claiming;
    }
    await writing;
    for (const each of items) if (each.isRepeated) await takeRepeated(each);
  };

  const claimName = ({ item, organization, seq }: ReadItem<'profiles'>): Promise<void> | undefined => {
    const { userId, username } = item.record;
    if (username === undefined) return undefined;
    return names.add({
      organization,
      form: normalizedIn(organization, username),
      userId,
      seq,
      where: item.where(),
    });
  };

  const takeRepeated = async (each: ReadItem<'profiles'>): Promise<void> => {
    const { organization, item, seq } = each;
    const { userId, updatedAt = 0 } = item.record;
    const stored = await store.hget(profileKey(organization.base, userId), 't');
    const holds = Number(stored ?? '') <= updatedAt;
    if (holds) {
      if (seq >= resumeAt) await writeProfiles([each]);
      await names.supersede({ organization, userId, seq });
      await claimName(each);
    }
    if (stored === null) tallies.add('profiles', organization.id, 'created');
    else duplicate('profiles', each, holds);
  };

  const takeOthers = async (entity: Entity, items: readonly ReadItem[]): Promise<void> => {
    const fresh = items.filter(({ seq }) => seq >= resumeAt);
    const results = await writer.put(
      entity,
      fresh.map(({ item }) => item),
      'write',
    );
    const outcomes = new Map<ReadItem, Outcome | undefined>();
    for (const [position, item] of fresh.entries()) outcomes.set(item, results[position]?.outcome);
    for (const each of items) {
      const { item, organization, isRepeated } = each;
      if (isRepeated && outcomes.get(each) !== 'created') duplicate(entity, each, true);
      else tallies.add(entity, organization.id, 'created');
      if (entity !== 'denylist') continue;
      const { username } = item.record as RecordOf['denylist'];
      await names.deny(organization, normalizedIn(organization, username));
    }
  };

  return {
    claim: (organization) =>
      organization.exists || organization.isLoading ? undefined : begin(organization),
    take: async (entity, items) => {
      if (items.length === 0) return;
      await pacer.wait(items.length);
      // What was not taken must not count as loaded.
      signal.throwIfAborted();
      if (entity === 'profiles') await takeProfiles(items as ReadItem<'profiles'>[]);
      else await takeOthers(entity, items);
    },
    index: async (onConflict) => {
      const profileOf = ({ organization, userId }: { organization: Organization; userId: string }): string =>
        profileKey(organization.base, userId);
      await names.write({
        onConflict: async (claim, holder) => {
          const { organization, userId, where } = claim;
          const username = (await store.hget(profileOf(claim), 'u')) ?? claim.form;
          const detail = `username ${JSON.stringify(username)} is also that of user ${JSON.stringify(holder.userId)} at ${holder.where}`;
          const issue = { entity: 'profiles', reason: 'username-conflict', where, detail } as const;
          issues.add({ ...issue, organizationId: organization.id, userId, username });
          if (onConflict === 'drop-username') {
            await store.hdel(profileOf(claim), 'u');
            return;
          }
          // From here on a record of this user would look like the first one, so this cannot be resumed.
          await onDiscard();
          await store.del(profileOf(claim));
          tallies.add('profiles', organization.id, 'refused');
          tallies.undo('profiles', organization.id, 'created');
        },
        onDenied: ({ organization, userId, where, form }) => {
          const detail = `username ${JSON.stringify(form)} is on the denylist: it is kept`;
          const issue = { entity: 'profiles', reason: 'denied-name-in-use', where, detail } as const;
          issues.add({ ...issue, organizationId: organization.id, userId, username: form });
        },
      });
    },
    finish: async () => {
      for (const organization of loading()) {
        const { id, base, namesToCome, settings, isKnown } = organization;
        await registerOrganization(store, prefix, id);
        const [comparison = 'exact', ...rest] = settingsArguments(settings);
        const outcome = await store.migrateFinishLoad(
          base,
          run,
          bucketCount(namesToCome),
          comparison,
          ...(isKnown ? rest : []),
        );
        if (outcome === 'lost') {
          throw new MigrationError(
            `organization ${JSON.stringify(id)} was changed by another tool while it was loaded: run the same command again`,
          );
        }
        organization.isLoading = false;
        await organizations.refresh(id);
        await store.srem(stagedKey(prefix, run), id);
      }
    },
  };
}

/** The organizations that a run has begun to load and not finished. */
export async function stagedOrganizations(
  { store, prefix }: Pick<MigrationContext, 'store' | 'prefix'>,
  run: string,
): Promise<string[]> {
  return await store.smembers(stagedKey(prefix, run));
}

/** Removes everything of the organizations that a run has begun to load. Once begun, it is not interrupted. */
export async function rollBack(
  { store, prefix, organizations, progress }: MigrationContext,
  run: string,
): Promise<void> {
  const bases = new Map<string, Organization>();
  for (const id of await stagedOrganizations({ store, prefix }, run)) {
    const organization = await organizations.find(id);
    const owner = await store.get(loadingKey(organization.base));
    // An organization that exists is not staged any more.
    if (owner === run && !organization.exists) bases.set(organization.base, organization);
  }
  const [only] = bases.size === 1 ? [...bases.keys()] : [];
  if (bases.size > 0) {
    for await (const keys of scanKeys(store, only ?? `${prefix}{`)) {
      const own = keys.filter((key) => {
        const base = key.slice(0, key.indexOf('}:', prefix.length) + 2);
        return bases.has(base) && key !== loadingKey(base);
      });
      progress.advance('rolling back', own.length, 0);
      await Promise.all(own.map(async (key) => await store.unlink(key)));
    }
  }
  for (const [base, organization] of bases) {
    await store.del(loadingKey(base));
    organization.isLoading = false;
  }
  await store.del(stagedKey(prefix, run));
}
