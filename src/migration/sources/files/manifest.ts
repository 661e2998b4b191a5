import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isFields } from '../../records/shapes.ts';
import { SourceError } from '../source.ts';
import { openFile, type DataFile, type NamedFile } from './file.ts';

/** The file in an export by which an incomplete copy is recognized. */
export const manifestName = 'manifest.json';
/** The folder in which the files of an export are written until all of them are whole. */
export const stagingName = '.incomplete';
const format = 'profile-bridge-export';

/** What an export says of one of its files. */
export interface ManifestEntry {
  readonly records: number;
  /** Of the file's bytes before any compression, in hexadecimal. */
  readonly sha256: string;
}

/** File names of an export, each with what it holds. */
export type Manifest = ReadonlyMap<string, ManifestEntry>;

/** A manifest as JSON text; equal exports have equal manifests. */
export function formatManifest(manifest: Manifest): string {
  return `${JSON.stringify({ format, files: Object.fromEntries(manifest) }, null, 2)}\n`;
}

/** The manifest of a folder; undefined if it has none, or one of another program. */
export async function readManifest(folder: string): Promise<Manifest | undefined> {
  const path = join(folder, manifestName);
  let manifest: { format?: unknown; files?: unknown } | null;
  try {
    manifest = JSON.parse(await readFile(path, 'utf8')) as typeof manifest;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // A folder may have that name, too.
    if (code === 'ENOENT' || code === 'EISDIR') return undefined;
    const fault = code === undefined ? 'is not valid JSON' : `cannot be read (${code})`;
    throw new SourceError(`${path} ${fault}: copy the export again, or delete this file`);
  }
  if (manifest?.format !== format || !isFields(manifest.files)) return undefined;
  return new Map(Object.entries(manifest.files as Record<string, ManifestEntry>));
}

/** The name under which a file was exported: it may have been compressed since. */
export function exportedName({ name }: NamedFile): string {
  return name.replace(/\.gz$/, '');
}

/** Throws a SourceError for a file that is not as it was exported. */
export async function checkDigest(file: DataFile, manifest: Manifest | undefined): Promise<void> {
  const entry = manifest?.get(exportedName(file));
  if (entry === undefined) return;
  const hash = createHash('sha256');
  let records = 0;
  for await (const chunk of openFile(file, { keepsMark: true }).chunks) {
    hash.update(chunk);
    for (let at = chunk.indexOf('\n'); at !== -1; at = chunk.indexOf('\n', at + 1)) records += 1;
  }
  if (hash.digest('hex') === entry.sha256 && records === entry.records) return;
  throw new SourceError(
    `${file.name} is not as it was exported (${manifestName}): copy or export it again, or delete ${manifestName} if it was edited on purpose`,
  );
}
