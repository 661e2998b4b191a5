import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Mapping } from './mapping.ts';
import { entityNames, isEntity } from '../records/records.ts';
import type { Entity } from '../records/records.ts';
import { readCsv, readCsvHeader } from './csv.ts';
import { fileVersion } from './file.ts';
import type { DataFile } from './file.ts';
import { readNdjson } from './ndjson.ts';
import { projectByPointers } from './pointers.ts';
import { SourceError } from './source.ts';
import type { Batch, ReadOptions, Source } from './source.ts';

const exampleNames = entityNames.map((entity) => `${entity}.ndjson`).join(', ');
const formats = ['ndjson', 'ndjson.gz', 'csv'] as const;

type Reader = (options: ReadOptions) => AsyncIterable<Batch>;

/** Opens a folder, or one file, whose files are named after the entities. Nothing is read but CSV headers. */
export async function openFiles(location: string, mapping: Mapping | undefined): Promise<Source> {
  const { files, ignored } = await findFiles(location);
  for (const entity of mapping?.keys() ?? []) {
    if (!files.has(entity))
      throw new SourceError(`the mapping names ${entity}, but ${location} holds no ${entity} file`);
  }
  const readers = new Map<Entity, Reader>();
  for (const entity of entityNames) {
    const file = files.get(entity);
    if (file !== undefined) readers.set(entity, await openFile(file, mapping));
  }
  return {
    name: location,
    entities: [...readers.keys()],
    ignored,
    read: (entity, options = {}) => {
      const reader = readers.get(entity);
      if (reader === undefined)
        throw new SourceError(
          `${location} holds no ${entity}: add the file ${entity}.ndjson, or leave ${entity} out`,
        );
      return reader(options);
    },
    close: async () => {},
  };
}

async function openFile(file: DataFile, mapping: Mapping | undefined): Promise<Reader> {
  const own = mapping?.get(file.entity);
  if (own?.query !== undefined || own?.key !== undefined) {
    throw new SourceError(
      `entities.${file.entity}: query and key are for databases; a file takes fields alone`,
    );
  }
  if (mapping !== undefined && own?.fields === undefined && own !== undefined) {
    throw new SourceError(`entities.${file.entity} maps nothing: add fields, or leave the entity out`);
  }
  if (file.format === 'csv') {
    const columns = await readCsvHeader(file, own?.fields);
    return (options) => readCsv(file, columns, options);
  }
  await fileVersion(file);
  const project =
    own?.fields === undefined ? undefined : projectByPointers(own.fields, `entities.${file.entity}`);
  return (options) => readNdjson(file, options, project);
}

async function findFiles(location: string): Promise<{ files: Map<Entity, DataFile>; ignored: string[] }> {
  let folder: boolean;
  try {
    folder = (await stat(location)).isDirectory();
  } catch (error) {
    throw new SourceError(
      `cannot read ${location} (${(error as NodeJS.ErrnoException).code ?? 'error'}): check --source`,
    );
  }
  if (!folder) {
    const file = asDataFile(location);
    if (file === undefined) {
      throw new SourceError(
        `${basename(location)} does not tell what it holds: name it after an entity, such as ${exampleNames} (or .ndjson.gz, .csv)`,
      );
    }
    return { files: new Map([[file.entity, file]]), ignored: [] };
  }
  const files = new Map<Entity, DataFile>();
  const ignored: string[] = [];
  for (const name of (await readdir(location)).sort()) {
    const file = asDataFile(join(location, name));
    if (file === undefined) {
      if (!name.startsWith('.')) ignored.push(name);
      continue;
    }
    const other = files.get(file.entity);
    if (other !== undefined) {
      throw new SourceError(
        `${location} holds both ${other.name} and ${file.name}: keep the one that is meant`,
      );
    }
    files.set(file.entity, file);
  }
  if (files.size === 0) {
    throw new SourceError(
      `${location} holds no known file: name files after the entities, such as ${exampleNames} (or .ndjson.gz, .csv)`,
    );
  }
  return { files, ignored };
}

function asDataFile(path: string): DataFile | undefined {
  const name = basename(path);
  for (const format of formats) {
    const entity = name.endsWith(`.${format}`) ? name.slice(0, -format.length - 1) : '';
    if (isEntity(entity)) return { path, name, entity, format };
  }
  return undefined;
}
