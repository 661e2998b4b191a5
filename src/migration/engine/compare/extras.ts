import { groupBy } from '../../../lib/collections/group-by.ts';
import { inBatches } from '../../../lib/collections/batches.ts';
import { identityOf } from '../../analysis/identity.ts';
import { createPartitions, partitionFor } from '../../../lib/bounded-memory/partitions.ts';
import type { Entity, RecordOf } from '../../records/records.ts';
import { runOrganizations } from '../../runs/runs.ts';
import type { Scope } from '../../sources/scope.ts';
import type { MigrationContext } from '../../context/context.ts';
import type { Organization } from '../../context/organizations.ts';
import { removeRecords } from '../stored/remove.ts';
import { groupOf, lineOf, recordsOf, scanRecords, type StoredRecord } from '../stored/scan.ts';
import { dryRun } from '../scripts.ts';

/** A record that Redis has and the source has not. */
interface Extra extends StoredRecord {
  /** Whether it was written here, or adopted from the legacy service since the source's snapshot. */
  isLocal: boolean;
}

export type Extras = ReturnType<typeof createExtras>;

const [inSource, inRedis] = ['s', 'r'];
const lookedUpAtOnce = 500;

/** Finds what Redis has and the source has not, within the scope; `run` may have brought it there. */
export function createExtras(
  context: MigrationContext,
  { entities, organizationId: only }: Scope,
  run: string,
) {
  const lines = createPartitions(context.workspace);
  const stored = new Map<Entity, number>();
  let noted = 0;
  const { organizations } = context;
  const among = (): Organization[] =>
    organizations.all().filter(({ id, exists }) => exists && (only === undefined || id === only));
  const note = (record: StoredRecord, side: string): void => {
    const line = lineOf(record);
    lines.add(partitionFor(line), side + line);
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

  return {
    /** Records that Redis has, by entity, as far as it was read; organizations are not counted. */
    stored: stored as ReadonlyMap<Entity, number>,
    /** The organizations that are looked at. */
    organizations: among,
    /** Notes that the source has a record. */
    note: <E extends Entity>(entity: E, organization: Organization, record: RecordOf[E]): void => {
      noted += 1;
      note({ entity, organization, key: identityOf(entity, record, organization) }, inSource);
    },
    /**
     * After the source was read: reads Redis once and gives the records that were not noted, of organizations that the
     * source names or that the run has migrated before. Records that are both added and removed meanwhile may be missed.
     */
    find: async function* (): AsyncGenerator<Extra> {
      if (only === undefined)
        for (const id of await runOrganizations(context, run)) await organizations.find(id);
      let found = 0;
      for await (const record of scanRecords(context, entities, among())) {
        const { entity } = record;
        if (entity !== 'organizations') stored.set(entity, (stored.get(entity) ?? 0) + 1);
        // Redis should hold about as much as the source has.
        found += 1;
        if (found % 1000 === 0) context.progress.advance('reading Redis', 1000, Math.min(1, found / noted));
        note(record, inRedis);
      }
      for (const batch of inBatches(missing(), { size: lookedUpAtOnce })) {
        const groups = [...groupBy(batch, groupOf).values()];
        const extras = groups.map(async (own) => await withOrigin(context, own));
        yield* (await Promise.all(extras)).flat();
      }
    },
  };
}

/** The extra records of one entity and organization: one that a prune would leave in place is not the source's. */
async function withOrigin(
  context: MigrationContext,
  lines: readonly [string, ...string[]],
): Promise<Extra[]> {
  const group = await recordsOf(context, lines);
  const areRemovable = await removeRecords(dryRun(context), group);
  const { entity, organization, keys } = group;
  return keys.map((key, position) => ({ entity, organization, key, isLocal: !areRemovable[position] }));
}
