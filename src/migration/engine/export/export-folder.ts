import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory } from '../../../lib/files/make-directory.ts';
import { createTextFile } from '../../../lib/files/text-file.ts';
import { hasEnded, thisProcess, type ProcessIdentity } from '../../../lib/system/process-identity.ts';
import {
  formatManifest,
  manifestName,
  readManifest,
  stagingName,
  type Manifest,
} from '../../sources/files/manifest.ts';
import { UsageError } from '../../errors.ts';

/** What to do when a file of an export cannot be written. */
export const exportRemedy = 'give --to another disk, then export again; nothing was exported';

/** In the staging folder, the process that writes there: once it has ended, others may remove the folder. */
const ownerFile = 'owner.json';

/** Prepares a new or empty folder for an export; the remains of a killed export do not count. */
export async function openExportFolder(folder: string) {
  const staging = join(folder, stagingName);
  const remove = (name: string): void => rmSync(join(folder, name), { recursive: true, force: true });
  try {
    makeDirectory(folder);
    await removeLeftovers(folder);
    if (readdirSync(folder).length > 0) {
      throw new UsageError(`${folder} is not empty: give --to a new folder, so that nothing is overwritten`);
    }
    mkdirSync(staging, { mode: 0o700 });
    writeFileSync(join(staging, ownerFile), JSON.stringify(thisProcess()), { mode: 0o600 });
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(
      `${folder} cannot be written (${(error as NodeJS.ErrnoException).code ?? 'error'}): give --to a folder that can`,
    );
  }

  const published: string[] = [];
  return {
    /** Where files are written until all are whole. */
    staging,
    /** Moves the files that the manifest names to where they belong. */
    publish: (manifest: Manifest): void => {
      const list = createTextFile(join(staging, manifestName), exportRemedy);
      list.write(formatManifest(manifest));
      list.close();
      for (const name of [manifestName, ...manifest.keys()]) {
        renameSync(join(staging, name), join(folder, name));
        published.push(name);
      }
      remove(stagingName);
    },
    /** Removes all that was written. */
    discard: (): void => {
      for (const name of [...published, stagingName]) remove(name);
    },
  };
}

/** Removes the remains of a killed export, unless it had just become complete. */
async function removeLeftovers(folder: string): Promise<void> {
  const staging = join(folder, stagingName);
  if (!existsSync(staging)) return;
  const owner = ownerOf(staging);
  // Without an owner, it was killed before it wrote anything else.
  if (owner !== undefined && !hasEnded(owner)) {
    throw new UsageError(
      `process ${owner.pid} on ${owner.host} may still be exporting to ${folder}: give --to another folder, or delete ${staging} if that process has ended`,
    );
  }
  const names = [...((await readManifest(folder))?.keys() ?? [])];
  const isWhole = names.length > 0 && names.every((name) => existsSync(join(folder, name)));
  if (!isWhole) for (const name of [...names, manifestName]) rmSync(join(folder, name), { force: true });
  rmSync(staging, { recursive: true, force: true });
}

/** The process that a staging folder belongs to; undefined if it belongs to none. */
function ownerOf(staging: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(join(staging, ownerFile), 'utf8')) as ProcessIdentity;
  } catch {
    return undefined;
  }
}
