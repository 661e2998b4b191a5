import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a folder and its missing parents with this `mode`; throws the system's error if that fails. Node's own
 * recursive mkdir never returns if the system reports an existing parent as missing, as under /proc.
 */
export function makeFolder(folder: string, mode = 0o777): void {
  const exists = (): boolean => statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (exists()) return;
  if (dirname(folder) !== folder) makeFolder(dirname(folder), mode);
  try {
    mkdirSync(folder, { mode });
  } catch (error) {
    // Another process may have just created it.
    if (!exists()) throw error;
  }
}
