import { pendingGraceMs } from '../../domain/profile.ts';
import type { MediaStore } from '../../media/store.ts';
import { forEachConcurrently } from '../../lib/collections/for-each-concurrently.ts';
import { profileKey } from '../../redis/keys.ts';
import { storeTime } from '../../redis/connection/client.ts';
import { createPictures } from '../../media/lifecycle.ts';
import type { Scope } from '../sources/scope.ts';
import type { Batch } from '../sources/source.ts';
import type { MigrationContext } from '../context/context.ts';
import type { Pacer } from '../engine/write/pacer.ts';
import { fetchPicture, PictureError } from './fetch.ts';
import { findSharedPlaces, readPicture } from './folder.ts';
import { subjectOf } from '../context/issues.ts';
import { migratePicture } from '../engine/scripts.ts';
import type { RecordOf } from '../records/records.ts';

export interface CopyOptions {
  media: MediaStore;
  /**
   * The folder of the files, and a time at which they existed there, by the store's clock in ms: 0 if unknown. Without it,
   * they are fetched from their URLs.
   */
  folder?: { readonly place: string; readonly asOf: number } | undefined;
  allowPrivate: boolean;
  pacer: Pacer;
}

export interface Copied {
  copied: number;
  /** Left with their old URL. */
  failed: number;
}

/** Pictures copied at once: most of the time is spent waiting for other servers. */
const atOnce = 8;

/**
 * Copies the pictures of the source's profiles. Each is stored as an upload is, and the file replaces the old URL; a
 * picture that fails is reported and keeps its URL. Only pictures that were not copied yet are fetched, so an
 * interrupted copy resumes where it stopped.
 */
export async function copyPictures(
  scope: Scope,
  context: MigrationContext,
  options: CopyOptions,
): Promise<Copied> {
  const { issues, signal, progress } = context;
  const counts: Copied = { copied: 0, failed: 0 };
  if (!scope.entities.includes('profiles')) return counts;
  const { folder } = options;
  const shared = folder === undefined ? new Set<string>() : await findSharedPlaces(scope, context);
  const read = async (url: string): Promise<Buffer> =>
    folder === undefined
      ? await fetchPicture(url, { ...options, signal })
      : await readPicture(url, folder.place, shared);
  for await (const batch of scope.source.read('profiles', { ...scope, signal })) {
    const wanted = await notYetCopied(context, batch);
    await forEachConcurrently(wanted, atOnce, async ({ record, where }) => {
      if (signal.aborted) return;
      await options.pacer.wait(1);
      try {
        if (await replaceUrl(context, options, record, read)) counts.copied += 1;
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof PictureError)) throw error;
        counts.failed += 1;
        const detail = `the picture ${error.message}: its URL is kept`;
        issues.add({ entity: 'profiles', reason: 'picture-not-copied', where, detail, ...subjectOf(record) });
      }
    });
    if (signal.aborted) return counts;
    progress.advance('copying pictures', wanted.length, batch.progress);
  }
  return counts;
}

/** The profiles of a batch that have a picture to copy. */
async function notYetCopied(
  { store, organizations }: MigrationContext,
  { rows, placeOf }: Batch<'profiles'>,
) {
  const wanted = await Promise.all(
    rows.map(async (row, index) => {
      if (!row.ok || row.record.profilePictureObjectDefinitionId !== undefined) return [];
      const { record } = row;
      if (record.profilePictureUrl === undefined) return [];
      const { base } = await organizations.find(record.organizationId);
      const url = await store.hget(profileKey(base, record.userId), 'pu');
      return url === record.profilePictureUrl ? [{ record, where: placeOf(index) }] : [];
    }),
  );
  return wanted.flat();
}

/** Puts a stored picture in the place of its URL; false if the profile has another picture by now. */
async function replaceUrl(
  { store, organizations, epoch, claim }: MigrationContext,
  { media, folder }: CopyOptions,
  { organizationId, userId, profilePictureUrl: url = '' }: RecordOf['profiles'],
  read: (url: string) => Promise<Buffer>,
): Promise<boolean> {
  const { base } = await organizations.find(organizationId);
  const now = await storeTime(store);
  const fetchedFrom = Math.min(now, folder?.asOf ?? now);
  const adopted = (await store.hget(profileKey(base, userId), 'as')) ?? '';
  const bytes = await read(url);
  const pictures = createPictures(store, media);
  const at = await storeTime(store);
  let picture = await pictures.store(base, userId, bytes, at);
  // The decoder rejects what has waited too long; a migration can wait longer than a request.
  for (let again = 20; picture.kind === 'busy' && again > 0; again -= 1)
    picture = await pictures.store(base, userId, bytes, at);
  if (picture.kind === 'unsupported') throw new PictureError('is not a JPEG, PNG, WebP or GIF by its bytes');
  if (picture.kind === 'invalid') throw new PictureError(picture.reason);
  if (picture.kind === 'busy') throw new PictureError('could not be decoded in time');
  const { file } = picture;
  const write = [epoch, '', claim] as const;
  const fetched = [userId, url, adopted, fetchedFrom] as const;
  const outcome = await migratePicture(store, base, ...write, ...fetched, file, pendingGraceMs);
  if (outcome === 'put') return true;
  await pictures.discard(base, file);
  if (outcome === 'lapsed') throw new PictureError('took too long to store');
  if (outcome === 'in-doubt') {
    const since =
      folder === undefined ? 'while it was copied' : 'since the files were written (--as-of says when)';
    throw new PictureError(`may have changed ${since}`);
  }
  return false;
}
