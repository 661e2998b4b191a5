import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { inBatches } from '../../../lib/collections/batches.ts';
import { createTextFile } from '../../../lib/files/text-file.ts';
import { yieldingItems } from '../../../lib/time-slices.ts';
import { counted } from '../../../lib/numbers.ts';
import { apiKeyKey, organizationOf } from '../../../redis/keys.ts';
import { findUnregistered, listOrganizations } from '../../../redis/organizations.ts';
import type { MigrationContext } from '../../context/context.ts';
import { recheckIndexes } from '../current-index.ts';
import { createGroups } from '../../../lib/bounded-memory/groups.ts';
import { createSorter } from '../../../lib/bounded-memory/sorter.ts';
import { exportRemedy, openExportFolder } from './export-folder.ts';
import { MigrationError, UsageError } from '../../errors.ts';
import { subjectOf } from '../../context/issues.ts';
import { normalizedIn, type Organization } from '../../context/organizations.ts';
import type { RecordNames } from '../../records/parse.ts';
import type { Entity } from '../../records/records.ts';
import type { ManifestEntry } from '../../sources/files/manifest.ts';
import { readRecords } from '../stored/read.ts';
import { groupOf, lineOf, recordsOf, scanRecords } from '../stored/scan.ts';

const readAtOnce = 50;

/**
 * Writes what Redis holds as records, one NDJSON file per entity, ordered by organization and key (code units), so that
 * equal contents give equal bytes. Streams: keys are sorted on disk. If the store is in use, each record is as it was
 * at one instant; a username that changed hands meanwhile may be in two of them, which is reported. Revoked API keys are
 * left out, for a record cannot say that a key is revoked. Files appear in the folder only once all of them are
 * complete, the manifest first, so the remains of a killed export are never mistaken for an export. Refuses to leave out
 * an organization that it meets and the registry does not have. Returns how many records were written, by entity.
 */
export async function exportRecords(
  context: MigrationContext,
  folder: string,
  entities: readonly Entity[],
  only: string | undefined,
): Promise<ReadonlyMap<Entity, number>> {
  const among = await organizationsIn(context, only);
  const target = await openExportFolder(folder);
  try {
    const keys = new Map(entities.map((entity) => [entity, createSorter(context.workspace)]));
    const found = new Map<Entity, number>();
    const others = new Set<string>();
    const onOther = only === undefined ? (base: string) => void others.add(base) : undefined;
    for await (const record of scanRecords(context, entities, among, onOther)) {
      keys.get(record.entity)?.add(lineOf(record));
      found.set(record.entity, (found.get(record.entity) ?? 0) + 1);
    }
    await refuseUnregistered(context, others);
    const manifest = new Map<string, ManifestEntry>();
    const written = new Map<Entity, number>();
    for (const [entity, lines] of keys) {
      const name = `${entity}.ndjson`;
      const path = join(target.staging, name);
      const entry = await writeEntity(context, path, entity, lines.sorted(), found.get(entity) ?? 0);
      manifest.set(name, entry);
      written.set(entity, entry.records);
    }
    await recheckIndexes(context, among);
    target.publish(manifest);
    return written;
  } catch (error) {
    target.discard();
    throw error;
  }
}

/** Writes the records of sorted lines, each once: a scan may give a key twice. */
async function writeEntity(
  context: MigrationContext,
  path: string,
  entity: Entity,
  lines: Iterable<string>,
  found: number,
): Promise<ManifestEntry> {
  const file = createTextFile(path, exportRemedy);
  const hash = createHash('sha256');
  const names = createGroups<Named>(context.workspace);
  let [count, done] = [0, 0];
  try {
    for (const batch of inBatches(withoutRepeated(lines), { size: readAtOnce, kindOf: groupOf })) {
      context.signal.throwIfAborted();
      const { organization, keys } = await recordsOf(context, batch);
      const stored = await readRecords[entity](context, organization, keys);
      const records =
        entity === 'api-keys' ? await withoutRevoked(context, organization, keys, stored) : stored;
      for (const record of records) {
        if (record === undefined) continue;
        const line = `${JSON.stringify(record)}\n`;
        file.write(line);
        hash.update(line);
        count += 1;
        if (entity !== 'profiles') continue;
        const subject = subjectOf(record);
        if (subject.username === undefined) continue;
        const name = [organization.id, normalizedIn(organization, subject.username)] as const;
        names.add(name, { ...subject, seq: count });
      }
      context.progress.advance(`exporting ${entity}`, batch.length, (done += batch.length) / found);
    }
  } finally {
    file.close();
  }
  if (entity === 'profiles') await reportShared(context, names.all());
  return { records: count, sha256: hash.digest('hex') };
}

/** Whose username it is, and on which line. */
type Named = RecordNames & { readonly seq: number };

/** Reports usernames that several records have: no store can be restored from those. */
async function reportShared({ issues, signal }: MigrationContext, groups: Iterable<Named[]>): Promise<void> {
  for await (const [first, ...others] of yieldingItems(groups)) {
    signal.throwIfAborted();
    for (const { seq, ...subject } of others) {
      const detail = `username ${JSON.stringify(subject.username)} is also that of user ${JSON.stringify(first?.userId)} at profiles.ndjson:${first?.seq}`;
      const where = `profiles.ndjson:${seq}`;
      issues.add({ entity: 'profiles', reason: 'username-conflict', where, detail, ...subject });
    }
  }
}

async function organizationsIn(
  { store, prefix, organizations }: MigrationContext,
  only: string | undefined,
): Promise<Organization[]> {
  const ids = only === undefined ? await listOrganizations(store, prefix) : [only];
  const found: Organization[] = [];
  for (const id of ids) found.push(await organizations.find(id));
  const all = found.filter(({ exists }) => exists);
  if (all.length > 0) return all;
  if (only !== undefined) {
    throw new UsageError(
      `there is no organization ${JSON.stringify(only)}: see profile-bridge admin org list`,
    );
  }
  throw new MigrationError(
    'there is nothing to export: Redis has no organization under this KEY_PREFIX; check REDIS_URL and KEY_PREFIX, and let a first apply end before you export',
  );
}

/** Throws if one of these organizations is still missing in the registry, rather than made since that was read. */
async function refuseUnregistered(
  { store, prefix }: MigrationContext,
  bases: ReadonlySet<string>,
): Promise<void> {
  const ids = [...bases].flatMap((base) => organizationOf(prefix, base) ?? []);
  const [id, ...others] = await findUnregistered(store, prefix, ids);
  if (id === undefined) return;
  const also = others.length === 0 ? '' : ` (and ${counted(others.length, 'other')})`;
  throw new MigrationError(
    `organization ${JSON.stringify(id)}${also} is not in the registry of organizations, so the export would lack it: run profile-bridge admin fsck --repair, then export again; nothing was exported`,
  );
}

/** The records whose keys are not revoked. Asked after they were read, so that a key revoked in between is left out. */
async function withoutRevoked<Found>(
  { store, issues }: MigrationContext,
  { id: organizationId, base }: Organization,
  hashes: readonly string[],
  records: readonly Found[],
): Promise<Found[]> {
  const found = await Promise.all(hashes.map((hash) => store.hmget(apiKeyKey(base, hash), 'i', 'x')));
  return records.filter((_, position) => {
    const [where, revokedAt] = found[position] ?? [];
    if (where == null || revokedAt == null) return true;
    const detail = 'is revoked, which a record cannot say: it is left out';
    issues.add({ entity: 'api-keys', reason: 'revoked-key-left-out', where, detail, organizationId });
    return false;
  });
}

function* withoutRepeated(lines: Iterable<string>): Generator<string> {
  let last: string | undefined;
  for (const line of lines) {
    if (line !== last) yield line;
    last = line;
  }
}
