import { readFile, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { yieldingItems } from '../../lib/time-slices.ts';
import { createSorter, separator } from '../../lib/bounded-memory/sorter.ts';
import type { MigrationContext } from '../context/context.ts';
import type { Scope } from '../sources/scope.ts';
import { maxPictureBytes, PictureError, tooLarge } from './fetch.ts';

/**
 * Reads the source, all organizations, for the places (`placesOf`) that several of its picture URLs lead to: whose picture
 * is there cannot be known.
 */
export async function findSharedPlaces(
  scope: Scope,
  { workspace, signal }: Pick<MigrationContext, 'workspace' | 'signal'>,
): Promise<ReadonlySet<string>> {
  const sorter = createSorter(workspace);
  const whole = { ...scope, organizationId: undefined, signal };
  for await (const { rows } of scope.source.read('profiles', whole)) {
    for (const row of rows) {
      const url = row.ok ? row.record.profilePictureUrl : undefined;
      for (const place of url === undefined ? [] : placesOf(url))
        sorter.add(JSON.stringify(place) + separator + JSON.stringify(url));
    }
  }
  const shared = new Set<string>();
  let [lastPlace, lastUrl] = ['', ''];
  for await (const line of yieldingItems(sorter.sorted())) {
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
export async function readPicture(url: string, folder: string, shared: ReadonlySet<string>): Promise<Buffer> {
  const places = placesOf(url);
  if (places.length === 0) throw new PictureError('has no path that names a file');
  const root = await realpath(folder);
  for (const place of places) {
    const file = await fileAt(root, place);
    if (file === undefined) continue;
    if (shared.has(place))
      throw new PictureError('is in the folder under a name that other URLs of the source lead to as well');
    return await readFile(file).catch((error: NodeJS.ErrnoException) => {
      throw new PictureError(`cannot be read from the folder (${error.code ?? error.message})`);
    });
  }
  throw new PictureError('is not in the folder');
}

/** The path of a file in the folder; undefined if there is none. */
async function fileAt(root: string, place: string): Promise<string | undefined> {
  const file = await realpath(join(root, place)).catch(() => undefined);
  if (file?.startsWith(join(root, sep)) !== true) return undefined;
  const found = await stat(file).catch(() => undefined);
  if (found?.isFile() !== true) return undefined;
  if (found.size > maxPictureBytes) throw tooLarge();
  return file;
}

/**
 * Where the file of a URL may be, below the folder: at the URL's path, which begins with a slash, or, in a flat folder,
 * under its last name. Nowhere, if the path is not valid.
 */
function placesOf(url: string): string[] {
  try {
    const path = decodeURIComponent(URL.canParse(url) ? new URL(url).pathname : (url.split(/[?#]/)[0] ?? ''));
    if (path.includes('\0')) return [];
    return [path.replace(/^\/?/, '/'), path.split('/').at(-1) ?? ''];
  } catch {
    return [];
  }
}
