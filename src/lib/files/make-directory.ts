import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a directory and its missing parents with this `mode`; throws the system's error if that fails. Node's own
 * recursive mkdir never returns if the system reports an existing parent as missing, as under /proc.
 */
export function makeDirectory(path: string, mode = 0o777): void {
  const exists = (): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (exists()) return;
  if (dirname(path) !== path) makeDirectory(dirname(path), mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Another process may have just created it.
    if (!exists()) throw error;
  }
}
