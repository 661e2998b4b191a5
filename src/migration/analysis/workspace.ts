import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { markOwned, ownerOf } from '../../lib/files/owned-folder.ts';

/** A folder for what does not fit into memory, private to this process and removed by `close`. */
export interface Workspace {
  /** An unused path. */
  newFile: () => string;
  close: () => void;
}

/** Makes a workspace under the system's folder for temporary files (TMPDIR). The folder appears when first used. */
export function createWorkspace(): Workspace {
  let folder: string | undefined;
  let files = 0;
  return {
    newFile: () => {
      folder ??= makeFolder();
      return join(folder, String(files++));
    },
    close: () => {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
      folder = undefined;
    },
  };
}

const prefix = 'profile-bridge-';

/** Makes the folder, and removes those that killed processes have left. */
function makeFolder(): string {
  for (const name of readdirSync(tmpdir())) {
    const leftover = join(tmpdir(), name);
    if (name.startsWith(prefix) && ownerOf(leftover) === 'ended')
      rmSync(leftover, { recursive: true, force: true });
  }
  const folder = mkdtempSync(join(tmpdir(), prefix));
  markOwned(folder);
  return folder;
}
