import { randomBytes } from 'node:crypto';
import { open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { makeFolder } from '../lib/files/make-directory.ts';
import { errorCode, MediaUnavailableError, pictureTypeOf, type MediaStore } from './store.ts';

const temporary = /^\.[A-Za-z0-9_.-]+\.tmp$/;
// Younger files may belong to another instance that is saving right now; no save takes a minute.
const leftoverAfter = 60_000;

async function sync(file: string): Promise<void> {
  const handle = await open(file, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Where a file is written before it is renamed. Derived from its name, so that removing a file finds both. */
function temporaryPath(folder: string, name: string): string {
  return path.join(folder, `.${name}.tmp`);
}

/** Writes a file atomically and durably: it appears under its name complete, or not at all. */
async function writeWhole(folder: string, name: string, bytes: Buffer): Promise<void> {
  const half = temporaryPath(folder, name);
  try {
    const handle = await open(half, 'wx');
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(half, path.join(folder, name));
    await sync(folder);
  } catch (error) {
    await rm(half, { force: true }).catch(() => {});
    throw error;
  }
}

async function removeLeftovers(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => temporary.test(name));
  for (const name of names) {
    const file = path.join(folder, name);
    const written = await stat(file).catch(() => undefined);
    if (written !== undefined && Date.now() - written.mtimeMs > leftoverAfter)
      await rm(file, { force: true });
  }
}

/**
 * A folder of pictures, created if missing. Removes temporary files of crashed saves and writes a test file; rejects
 * with one line and the remedy if the folder cannot be written.
 */
export async function openFolder(folder: string): Promise<MediaStore> {
  const reach = async <T>(verb: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw new MediaUnavailableError(`Cannot ${verb} the media folder ${folder} (${errorCode(error)}).`, {
        cause: error,
      });
    }
  };

  try {
    makeFolder(folder);
    await removeLeftovers(folder);
    const proof = `.writable-${randomBytes(16).toString('base64url')}.tmp`;
    await writeWhole(folder, proof, Buffer.alloc(0));
    await rm(path.join(folder, proof), { force: true });
  } catch (error) {
    throw new Error(
      `MEDIA_URL: the folder ${folder} cannot be written (${errorCode(error)}); let the service's user write there, or set MEDIA_URL to another folder.`,
      { cause: error },
    );
  }

  return {
    save: async (name, bytes) => {
      if (pictureTypeOf(name) === undefined) throw new TypeError('not the name of a picture');
      await reach('write to', async () => writeWhole(folder, name, bytes));
    },
    read: async (name) => {
      const type = pictureTypeOf(name);
      if (type === undefined) return undefined;
      return reach('read from', async () => {
        try {
          return { bytes: await readFile(path.join(folder, name)), type };
        } catch (error) {
          if (errorCode(error) === 'ENOENT') return undefined;
          throw error;
        }
      });
    },
    remove: async (name) => {
      if (pictureTypeOf(name) === undefined) return;
      await reach('remove from', async () => {
        // A killed save may have left it behind.
        await rm(temporaryPath(folder, name), { force: true });
        await rm(path.join(folder, name), { force: true });
      });
    },
  };
}
