import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and its parents where they are absent; `mode` is that of the new ones. Throws the system's error
 * where one cannot be made: Node's own recursive way tries for ever where the system says that a parent is absent
 * though it is there, as under /proc.
 */
export function makeFolder(folder: string, mode = 0o777): void {
  const isThere = (): boolean => statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (isThere()) return;
  if (dirname(folder) !== folder) makeFolder(dirname(folder), mode);
  try {
    mkdirSync(folder, { mode });
  } catch (error) {
    // Unless another process has just made it.
    if (!isThere()) throw error;
  }
}
