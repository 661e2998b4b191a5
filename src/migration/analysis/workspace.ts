import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder for what does not fit into memory, private to this process and gone with `close`. */
export interface Workspace {
  /** A path nobody else uses. */
  newFile: () => string;
  close: () => void;
}

/** Makes a workspace under the system's folder for temporary files (TMPDIR). The folder appears when first used. */
export function createWorkspace(): Workspace {
  let folder: string | undefined;
  let files = 0;
  return {
    newFile: () => {
      folder ??= mkdtempSync(join(tmpdir(), 'profile-bridge-'));
      return join(folder, String(files++));
    },
    close: () => {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
      folder = undefined;
    },
  };
}
