import { readFile, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { yieldingItems } from '../../lib/time-slices.ts';
import { createSorter, separator } from '../../lib/bounded-memory/sorter.ts';
import type { MigrationContext } from '../context/context.ts';
import type { Scope } from '../sources/scope.ts';
import { maxPictureBytes, PictureError, tooLarge } from './fetch.ts';

/** Where the file of a URL may be, below the folder: at the URL's path or, in a flat folder, under its last name. */
interface Places {
  path: string;
  name: string;
}

/** What several URLs of a source would lead to: whose picture it is cannot be known. */
export interface SharedPlaces {
  paths: ReadonlySet<string>;
  names: ReadonlySet<string>;
}

/** Reads the source, all organizations, for the paths and the names that several of its picture URLs have. */
export async function findSharedPlaces(
  scope: Scope,
  { workspace, signal }: Pick<MigrationContext, 'workspace' | 'signal'>,
): Promise<SharedPlaces> {
  const [paths, names] = [createSorter(workspace), createSorter(workspace)];
  const whole = { ...scope, organizationId: undefined, signal };
  for await (const { rows } of scope.source.read('profiles', whole)) {
    for (const row of rows) {
      const url = row.ok ? row.record.profilePictureUrl : undefined;
      const places = url === undefined ? undefined : placesOf(url);
      if (places === undefined) continue;
      const line = separator + JSON.stringify(url);
      paths.add(JSON.stringify(places.path) + line);
      names.add(JSON.stringify(places.name) + line);
    }
  }
  return { paths: await sharedIn(paths.sorted()), names: await sharedIn(names.sorted()) };
}

/** The places of sorted lines that have more than one URL. */
async function sharedIn(lines: Iterable<string>): Promise<ReadonlySet<string>> {
  const shared = new Set<string>();
  let [lastPlace, lastUrl] = ['', ''];
  for await (const line of yieldingItems(lines)) {
    const [place = '', url = ''] = line.split(separator);
    if (place === lastPlace && url !== lastUrl) shared.add(JSON.parse(place) as string);
    [lastPlace, lastUrl] = [place, url];
  }
  return shared;
}

/**
 * Reads a picture from a folder: the file at the URL's path below it, or else of the path's last name, unless other URLs
 * of the source would lead there, too. Nothing outside the folder is ever read. Rejects with a PictureError if it cannot
 * be had.
 */
export async function readPicture(url: string, folder: string, shared: SharedPlaces): Promise<Buffer> {
  const places = placesOf(url);
  if (places === undefined) throw new PictureError('has no path that names a file');
  const root = await realpath(folder);
  const atPath = await fileAt(root, places.path);
  const file = atPath ?? (await fileAt(root, places.name));
  if (file === undefined) throw new PictureError('is not in the folder');
  if (atPath === undefined ? shared.names.has(places.name) : shared.paths.has(places.path)) {
    throw new PictureError('is in the folder under a name that other URLs of the source lead to as well');
  }
  return await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw new PictureError(`cannot be read from the folder (${error.code ?? error.message})`);
  });
}

/** The path of a file in the folder; undefined if there is none. */
async function fileAt(root: string, place: string): Promise<string | undefined> {
  if (place === '') return undefined;
  const file = await realpath(join(root, place)).catch(() => undefined);
  if (file?.startsWith(join(root, sep)) !== true) return undefined;
  const found = await stat(file).catch(() => undefined);
  if (found?.isFile() !== true) return undefined;
  if (found.size > maxPictureBytes) throw tooLarge();
  return file;
}

function placesOf(url: string): Places | undefined {
  try {
    const path = decodeURIComponent(URL.canParse(url) ? new URL(url).pathname : (url.split(/[?#]/)[0] ?? ''));
    return path.includes('\0') ? undefined : { path, name: path.split('/').at(-1) ?? '' };
  } catch {
    return undefined;
  }
}
