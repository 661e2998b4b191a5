import {
  adoptionsKey,
  apiKeyKey,
  collectionKey,
  denylistKey,
  denylistWritesKey,
  localWritesKey,
  objectsKey,
  profileKey,
  settingsKey,
} from '../../../redis/keys.ts';
import { identityOf } from '../../analysis/identity.ts';
import { createPartitions, partitionFor } from '../../analysis/partitions.ts';
import { separator } from '../../analysis/sorter.ts';
import type { Entity, RecordOf } from '../../records/records.ts';
import type { MigrationContext } from '../context.ts';
import type { Organization } from '../organizations.ts';
import { scanRecords, type StoredRecord } from '../export/stored-keys.ts';

/** A record that Redis has and the source has not. */
export interface Extra extends StoredRecord {
  /** Whether it was written here or adopted from the legacy service since, rather than migrated. */
  isLocal: boolean;
}

/** Finds what Redis has besides the source. */
export interface Extras {
  /** Notes that the source has a record. */
  note: <E extends Entity>(entity: E, organization: Organization, record: RecordOf[E]) => void;
  /**
   * After the source was read: reads Redis once and gives the records of these organizations that were not noted.
   * `stored` counts the records of Redis. What is both added and removed meanwhile may be missed.
   */
  find: (
    among: ReadonlyMap<string, Organization>,
    stored?: Map<Entity, number>,
    onOtherKey?: Parameters<typeof scanRecords>[3],
  ) => AsyncGenerator<Extra>;
}

const [inSource, inRedis] = ['a', 'b'];
const lookedUpAtOnce = 500;

/** A search among these entities; organizations' own settings are no extras. */
export function createExtras(context: MigrationContext, wanted: readonly Entity[]): Extras {
  const entities = wanted.filter((entity) => entity !== 'organizations');
  const lines = createPartitions(context.workspace);
  let noted = 0;
  const note = (entity: Entity, id: string, key: string, side: string): void => {
    // References hold the one control character that lines must not.
    const record = entity + separator + id + separator + key.replaceAll('\n', '\u0002');
    lines.add(partitionFor(record), side + record);
  };

  async function* missing(): AsyncGenerator<StoredRecord> {
    for (const own of lines.all()) {
      const known = new Set<string>();
      for (const line of own) if (line.startsWith(inSource)) known.add(line.slice(1));
      for (const line of own) {
        const record = line.slice(1);
        if (known.has(record)) continue;
        // A scan may give a key twice.
        known.add(record);
        const [entity, id = '', key = ''] = record.split(separator);
        const organization = await context.organizations.find(id);
        yield { entity: entity as Entity, organization, key: key.replaceAll('\u0002', '\n') };
      }
    }
  }

  return {
    note: (entity, organization, record) => {
      if (entity === 'organizations') return;
      noted += 1;
      note(entity, organization.id, identityOf(entity, record, organization), inSource);
    },
    find: async function* (among, stored, onOtherKey) {
      let found = 0;
      for await (const { entity, organization, key } of scanRecords(context, entities, among, onOtherKey)) {
        stored?.set(entity, (stored.get(entity) ?? 0) + 1);
        // What Redis should hold is about what the source has.
        found += 1;
        if (found % 1000 === 0) context.progress.advance('reading Redis', 1000, Math.min(1, found / noted));
        note(entity, organization.id, key, inRedis);
      }
      let batch: StoredRecord[] = [];
      for await (const record of missing()) {
        batch.push(record);
        if (batch.length < lookedUpAtOnce) continue;
        yield* await withOrigin(context, batch);
        batch = [];
      }
      yield* await withOrigin(context, batch);
    },
  };
}

async function withOrigin(context: MigrationContext, records: readonly StoredRecord[]): Promise<Extra[]> {
  const areLocal = await Promise.all(records.map(async (record) => await isLocalWrite(context, record)));
  return records.map((record, position) => ({ ...record, isLocal: areLocal[position] === true }));
}

/** The Redis key of a record, or of the hash or set it stands in, for people. */
export function placeOf({ entity, organization, key }: StoredRecord): string {
  const { base, index } = organization;
  switch (entity) {
    case 'profiles':
      return profileKey(base, key);
    case 'api-keys':
      return apiKeyKey(base, key);
    case 'objects':
      return `${objectsKey(base)} ${JSON.stringify(key)}`;
    case 'denylist':
      return `${denylistKey(base, index)} ${JSON.stringify(key)}`;
    case 'collections': {
      const [user = '', reference = ''] = key.split('\u0003');
      return `${collectionKey(base, user)} ${JSON.stringify(reference)}`;
    }
    case 'organizations':
      return settingsKey(base);
    default:
      throw new TypeError(`no entity: ${String(entity satisfies never)}`);
  }
}

/**
 * Whether the record was written here, through the bridge or by its operator, or adopted from the legacy service since
 * the source's snapshot, rather than migrated.
 */
export async function isLocalWrite(
  context: Pick<MigrationContext, 'store' | 'snapshotAt' | 'marksFrom'>,
  { entity, organization: { base }, key }: StoredRecord,
): Promise<boolean> {
  const { store, snapshotAt = 0, marksFrom } = context;
  const marked = async (mark: string): Promise<boolean> =>
    (await store.sismember(localWritesKey(base), mark)) === 1;
  switch (entity) {
    case 'profiles':
      return await isLocalProfile(context, base, key);
    case 'api-keys': {
      const [made, revoked] = await store.hmget(apiKeyKey(base, key), 'b', 'x');
      return made !== null || revoked !== null;
    }
    case 'objects':
      return await marked(`o\n${key}`);
    case 'collections':
      return await marked(`c\n${key.replace('\u0003', '\n')}`);
    case 'denylist':
      return (
        (await store.hmget(denylistWritesKey(base), '', key)).some(
          (number) => Number(number ?? -1) >= marksFrom,
        ) ||
        (marksFrom === 0 && ((await marked('d\n')) || (await marked(`d\n${key}`)))) ||
        Number((await store.hget(adoptionsKey(base), 'denylist-at')) ?? -1) >= snapshotAt
      );
    case 'organizations':
      return (await store.hget(settingsKey(base), 'b')) !== null;
    default:
      throw new TypeError(`no entity: ${String(entity satisfies never)}`);
  }
}

/** The same of a profile. */
export async function isLocalProfile(
  { store, marksFrom }: Pick<MigrationContext, 'store' | 'marksFrom'>,
  base: string,
  userId: string,
): Promise<boolean> {
  const [changedUnder, adoptedAt] = await store.hmget(profileKey(base, userId), 'b', 'at');
  return Number(changedUnder ?? -1) >= marksFrom || adoptedAt !== null;
}
