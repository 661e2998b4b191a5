import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { entityNames, isEntity, type Entity } from '../../records/records.ts';
import type { Mapping } from '../mapping.ts';
import { createSource, SourceError, type ReadRows, type Source } from '../source.ts';
import { lookAt, type DataFile, type NamedFile } from './file.ts';
import {
  checkDigest,
  exportedName,
  manifestName,
  readManifest,
  stagingName,
  type Manifest,
} from './manifest.ts';
import { readNdjson } from './ndjson.ts';
import { createProjection } from './pointers.ts';

const exampleNames = `${entityNames.map((entity) => `${entity}.ndjson`).join(', ')} (or .ndjson.gz, .csv)`;
const formats = ['ndjson', 'ndjson.gz', 'csv'] as const;

/** Opens a folder, or one file, whose files are named after the entities. Nothing is read but CSV headers. */
export async function openFiles(location: string, mapping: Mapping | undefined): Promise<Source> {
  const { files, ignored, manifest } = await findFiles(location);
  for (const entity of mapping?.keys() ?? []) {
    if (!files.has(entity))
      throw new SourceError(`the mapping names ${entity}, but ${location} holds no ${entity} file`);
  }
  const readers = new Map<Entity, ReadRows>();
  const versions: string[] = [];
  for (const [entity, named] of files) {
    const file = await lookAt(named);
    versions.push(`${file.name} ${file.version}`);
    readers.set(entity, await openReader(file, mapping, manifest));
  }
  return createSource(readers, {
    name: location,
    ignored,
    settledUntil: Number.POSITIVE_INFINITY,
    isReadWhole: true,
    version: versions.join('\n'),
    close: async () => {},
  });
}

async function openReader(
  file: DataFile,
  mapping: Mapping | undefined,
  manifest: Manifest | undefined,
): Promise<ReadRows> {
  const own = mapping?.get(file.entity);
  const where = `entities.${file.entity}`;
  if (own?.query !== undefined || own?.key !== undefined)
    throw new SourceError(`${where}: query and key are for databases; a file takes fields alone`);
  if (own !== undefined && own.fields === undefined)
    throw new SourceError(`${where} maps nothing: add fields, or leave the entity out`);
  if (file.format === 'csv') {
    const { openCsv } = await import('./csv.ts');
    return readUnchanged(file, manifest, await openCsv(file, own?.fields));
  }
  const projection = own?.fields && createProjection(own.fields, where);
  return readUnchanged(file, manifest, (options) => readNdjson(file, options, projection));
}

/** Reads only the version of the file that was opened, and, where it is part of an export, only what was exported. */
function readUnchanged(file: DataFile, manifest: Manifest | undefined, read: ReadRows): ReadRows {
  const check = async (): Promise<void> => {
    if ((await lookAt(file)).version === file.version) return;
    throw new SourceError(
      `${file.name} has changed since it was opened: wait until nothing writes to it, then run the same command again`,
    );
  };
  let isChecked = false;
  return async function* (options) {
    await check();
    if (!isChecked) await checkDigest(file, manifest);
    isChecked = true;
    yield* read(options);
    await check();
  };
}

async function findFiles(location: string) {
  const { isFolder, names } = await listNames(location);
  const folder = isFolder ? location : dirname(location);
  const manifest = await readManifest(folder);
  const files = new Map<Entity, NamedFile>();
  const ignored: string[] = [];
  for (const name of names) {
    const file = asDataFile(join(folder, name));
    if (file === undefined) {
      const isExpected = name.startsWith('.') || (name === manifestName && manifest !== undefined);
      if (!isExpected) ignored.push(name);
      continue;
    }
    const other = files.get(file.entity);
    if (other !== undefined) {
      throw new SourceError(`${location} holds both ${other.name} and ${file.name}: remove one of them`);
    }
    files.set(file.entity, file);
  }
  if (names.includes(stagingName))
    throw new SourceError(`${location} holds an export that did not finish: run that export again`);
  if (files.size === 0) {
    const others = ignored.length === 0 ? '' : ` (there is ${ignored.slice(0, 3).join(', ')})`;
    throw new SourceError(
      isFolder
        ? `${location} holds no known file${others}: name files after the entities, such as ${exampleNames}`
        : `${basename(location)} does not say what it holds: name it after an entity, such as ${exampleNames}`,
    );
  }
  const exported = new Set([...files.values()].map(exportedName));
  const missing = isFolder ? [...(manifest?.keys() ?? [])].find((name) => !exported.has(name)) : undefined;
  if (missing !== undefined) {
    throw new SourceError(
      `${location} is not a whole export: ${missing} is missing; copy it again, or export again`,
    );
  }
  return { files, ignored, manifest };
}

/** The names in a folder, in order; or the file's own. */
async function listNames(location: string): Promise<{ isFolder: boolean; names: string[] }> {
  try {
    const isFolder = (await stat(location)).isDirectory();
    return { isFolder, names: isFolder ? (await readdir(location)).sort() : [basename(location)] };
  } catch (error) {
    throw new SourceError(
      `cannot read ${location} (${(error as NodeJS.ErrnoException).code ?? 'error'}): check --source`,
    );
  }
}

/** The file at a path, if its name says what it holds. */
export function asDataFile(path: string): NamedFile | undefined {
  const name = basename(path);
  for (const format of formats) {
    const entity = name.endsWith(`.${format}`) ? name.slice(0, -format.length - 1) : '';
    if (isEntity(entity)) return { path, name, entity, format };
  }
  return undefined;
}
