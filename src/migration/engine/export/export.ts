import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { decodeReference } from '../../../domain/profile.ts';
import { createTextFile } from '../../../lib/files/text-file.ts';
import { apiKeyKey, denylistKey, objectsKey } from '../../../redis/keys.ts';
import { listOrganizations } from '../../../redis/organizations.ts';
import type { MigrationContext } from '../context.ts';
import { createSorter, byCodeUnits } from '../../analysis/sorter.ts';
import { exportRemedy, openExportFolder } from './export-folder.ts';
import { scanRecords } from './stored-keys.ts';
import { MigrationError, UsageError } from '../issues.ts';
import type { Organization } from '../organizations.ts';
import type { Entity, RecordOf } from '../../records/records.ts';
import { apiKeyRecord, organizationRecord, profileRecord } from '../../records/stored.ts';
import type { ManifestEntry } from '../../sources/files/manifest.ts';
import { migrateRead } from '../scripts.ts';
import { pairsOf } from '../../../lib/pairs.ts';

export interface Exported {
  /** Records written, by entity. */
  written: ReadonlyMap<Entity, number>;
}

const separator = '\u0001';
const readAtOnce = 500;

/**
 * Writes what Redis holds as records, one NDJSON file per entity, ordered by organization and key (code units), so
 * that equal contents give equal bytes. Streams: keys are sorted on disk. Of a store in use each record is as it is
 * at one instant. Revoked API keys are left out, for a record cannot say that a key is revoked. Files appear in the
 * folder only once all of them are whole, the manifest first: what a kill leaves there is never taken for an export.
 */
export async function exportRecords(
  context: MigrationContext,
  folder: string,
  entities: readonly Entity[],
  only: string | undefined,
): Promise<Exported> {
  const among = await organizationsIn(context, only);
  const target = await openExportFolder(folder);
  try {
    const manifest = new Map<string, ManifestEntry>();
    const written = new Map<Entity, number>();
    for (const entity of entities) {
      const name = `${entity}.ndjson`;
      const entry = await writeEntity(context, join(target.staging, name), entity, among);
      manifest.set(name, entry);
      written.set(entity, entry.records);
    }
    target.publish(manifest);
    return { written };
  } catch (error) {
    target.discard();
    throw error;
  }
}

async function writeEntity(
  context: MigrationContext,
  path: string,
  entity: Entity,
  among: ReadonlyMap<string, Organization>,
): Promise<ManifestEntry> {
  const file = createTextFile(path, exportRemedy);
  const hash = createHash('sha256');
  let count = 0;
  try {
    for await (const records of recordsOf(context, entity, among)) {
      context.signal.throwIfAborted();
      let block = '';
      for (const record of records) block += `${JSON.stringify(record)}\n`;
      file.write(block);
      hash.update(block);
      count += records.length;
      context.progress.advance(`exporting ${entity}`, records.length, 0);
    }
  } finally {
    file.close();
  }
  return { records: count, sha256: hash.digest('hex') };
}

async function organizationsIn(
  { store, prefix, organizations }: MigrationContext,
  only: string | undefined,
): Promise<Map<string, Organization>> {
  const ids = only === undefined ? await listOrganizations(store, prefix) : [only];
  const all = new Map<string, Organization>();
  for (const id of ids.sort(byCodeUnits)) {
    const organization = await organizations.find(id);
    if (organization.exists) all.set(id, organization);
    else if (only !== undefined) {
      throw new UsageError(
        `there is no organization ${JSON.stringify(only)}: see profile-bridge admin org list`,
      );
    }
  }
  if (all.size === 0) {
    throw new MigrationError(
      'there is nothing to export: Redis has no organization under this KEY_PREFIX; check REDIS_URL and KEY_PREFIX, and let a first apply end before you export',
    );
  }
  return all;
}

/** An entity's records in order, some at a time. */
async function* recordsOf(
  context: MigrationContext,
  entity: Entity,
  among: ReadonlyMap<string, Organization>,
): AsyncGenerator<RecordOf[Entity][]> {
  if (entity === 'organizations') {
    yield [...among.values()].map(({ id, settings }) => organizationRecord(id, settings));
    return;
  }
  const sorter = createSorter(context.workspace);
  for await (const { organization, key } of scanRecords(context, [entity], among)) {
    sorter.add(organization.id + separator + key.replace('\n', '\u0002'));
  }
  let batch: { organization: Organization; key: string }[] = [];
  let last: string | undefined;
  for (const line of sorter.sorted()) {
    // A scan may give a key twice.
    if (line === last) continue;
    last = line;
    const [id = '', key = ''] = line.split(separator);
    const organization = among.get(id);
    if (organization === undefined) continue;
    if (batch.length >= readAtOnce || (batch[0] !== undefined && batch[0].organization !== organization)) {
      yield await readers[entity](
        context,
        batch[0]?.organization ?? organization,
        batch.map(({ key: own }) => own),
      );
      batch = [];
    }
    batch.push({ organization, key: key.replace('\u0002', '\n') });
  }
  const [first] = batch;
  if (first !== undefined)
    yield await readers[entity](
      context,
      first.organization,
      batch.map(({ key }) => key),
    );
}

type Reader = (
  context: MigrationContext,
  organization: Organization,
  keys: readonly string[],
) => Promise<RecordOf[Entity][]>;

const readProfiles: Reader = async ({ store, mediaUrl }, { id, base, index }, users) => {
  const found = await migrateRead(store, base, index, JSON.stringify(users.map((user) => [user, ''])));
  const records: RecordOf['profiles'][] = [];
  for (const [position, user] of users.entries()) {
    const [flat = []] = found[position] ?? [];
    const stored = new Map(pairsOf(flat));
    if (stored.has('t')) records.push(profileRecord(id, user, stored, mediaUrl));
  }
  return records;
};

const readKeys: Reader = async ({ store, issues }, { id, base }, hashes) => {
  const found = await Promise.all(hashes.map((hash) => store.hgetall(apiKeyKey(base, hash))));
  const records: RecordOf['api-keys'][] = [];
  for (const [position, stored] of found.entries()) {
    const hash = hashes[position] ?? '';
    if (stored['i'] === undefined) continue;
    if (stored['x'] === undefined) {
      records.push(apiKeyRecord(id, hash, stored));
    } else {
      const detail = 'is revoked, and would come back to life: it is left out';
      issues.add({
        entity: 'api-keys',
        reason: 'revoked-key-left-out',
        where: stored['i'],
        detail,
        organizationId: id,
      });
    }
  }
  return records;
};

const readObjects: Reader = async ({ store }, { id, base }, references) => {
  const urls = await store.hmget(objectsKey(base), ...references);
  const records: RecordOf['objects'][] = [];
  for (const [position, reference] of references.entries()) {
    const url = urls[position] ?? null;
    if (url !== null) records.push({ organizationId: id, ...decodeReference(reference), url });
  }
  return records;
};

const readCollections: Reader = async (_, { id }, keys) =>
  keys.map((key) => {
    const [userId = '', reference = ''] = key.split('\u0003');
    return { organizationId: id, userId, ...decodeReference(reference) };
  });

const readDenylist: Reader = async ({ store }, { id, base, index }, forms) => {
  const names = await store.hmget(denylistKey(base, index), ...forms);
  const records: RecordOf['denylist'][] = [];
  for (const [position, form] of forms.entries()) {
    const name = names[position] ?? null;
    if (name !== null) records.push({ organizationId: id, username: name === '' ? form : name });
  }
  return records;
};

const readers: Readonly<Record<Exclude<Entity, 'organizations'>, Reader>> = {
  'api-keys': readKeys,
  objects: readObjects,
  collections: readCollections,
  profiles: readProfiles,
  denylist: readDenylist,
};
