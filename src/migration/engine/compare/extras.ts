import { groupBy } from '../../../lib/collections/group-by.ts';
import { inBatches } from '../../../lib/collections/batches.ts';
import { identityOf } from '../../analysis/identity.ts';
import { createPartitions, partitionFor } from '../../analysis/partitions.ts';
import { separator } from '../../analysis/sorter.ts';
import type { Entity, RecordOf } from '../../records/records.ts';
import type { MigrationContext } from '../context.ts';
import type { Organization } from '../organizations.ts';
import { dry } from '../scripts.ts';
import { removeRecords } from '../stored/remove.ts';
import { scanRecords, type OnOtherKey, type StoredRecord } from '../stored/scan.ts';

/** A record that Redis has and the source has not. */
interface Extra extends StoredRecord {
  /** Whether it was written here or adopted from the legacy service since, rather than migrated. */
  isLocal: boolean;
}

/** Finds what Redis has besides the source. */
export interface Extras {
  /** Notes that the source has a record. */
  note: <E extends Entity>(entity: E, organization: Organization, record: RecordOf[E]) => void;
  /** Records that Redis has, by entity, as far as it was read; organizations are not counted. */
  readonly stored: ReadonlyMap<Entity, number>;
  /**
   * After the source was read: reads Redis once and gives the records of these organizations that were not noted.
   * Records that are both added and removed meanwhile may be missed.
   */
  find: (among: ReadonlyMap<string, Organization>, onOtherKey?: OnOtherKey) => AsyncGenerator<Extra>;
}

const [inSource, inRedis] = ['a', 'b'];
const lookedUpAtOnce = 500;

/** A search among these entities. */
export function createExtras(context: MigrationContext, entities: readonly Entity[]): Extras {
  const lines = createPartitions(context.workspace);
  const stored = new Map<Entity, number>();
  let noted = 0;
  const note = (entity: Entity, id: string, key: string, side: string): void => {
    // References hold the one control character that lines must not.
    const record = entity + separator + id + separator + key.replaceAll('\n', '\u0002');
    lines.add(partitionFor(record), side + record);
  };

  function* missing(): Generator<string> {
    for (const own of lines.all()) {
      const known = new Set<string>();
      for (const line of own) if (line.startsWith(inSource)) known.add(line.slice(1));
      for (const line of own) {
        const record = line.slice(1);
        if (known.has(record)) continue;
        // A scan may give a key twice.
        known.add(record);
        yield record;
      }
    }
  }

  const recordOf = async (line: string): Promise<StoredRecord> => {
    const [entity, id = '', key = ''] = line.split(separator);
    const organization = await context.organizations.find(id);
    return { entity: entity as Entity, organization, key: key.replaceAll('\u0002', '\n') };
  };

  return {
    stored,
    note: (entity, organization, record) => {
      noted += 1;
      note(entity, organization.id, identityOf(entity, record, organization), inSource);
    },
    find: async function* (among, onOtherKey) {
      let found = 0;
      for await (const { entity, organization, key } of scanRecords(context, entities, among, onOtherKey)) {
        if (entity !== 'organizations') stored.set(entity, (stored.get(entity) ?? 0) + 1);
        // Redis should hold about as much as the source has.
        found += 1;
        if (found % 1000 === 0) context.progress.advance('reading Redis', 1000, Math.min(1, found / noted));
        note(entity, organization.id, key, inRedis);
      }
      for (const batch of inBatches(missing(), { size: lookedUpAtOnce })) {
        const records = await Promise.all(batch.map(recordOf));
        const groups = groupBy(records, ({ entity, organization }) => entity + separator + organization.id);
        const extras = [...groups.values()].map(async (own) => await withOrigin(context, own));
        yield* (await Promise.all(extras)).flat();
      }
    },
  };
}

/** Records of one entity and organization: what a prune would leave there was written here. */
async function withOrigin(context: MigrationContext, records: readonly StoredRecord[]): Promise<Extra[]> {
  const areRemovable = await removeRecords(context, records, dry);
  return records.map((record, position) => ({ ...record, isLocal: areRemovable[position] !== true }));
}
