import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasEnded, thisProcess, type ProcessIdentity } from '../system/process-identity.ts';

const ownerFile = 'owner.json';

/** Marks a folder as belonging to this process: others may remove it once this process has ended. */
export function markOwned(folder: string): void {
  writeFileSync(join(folder, ownerFile), JSON.stringify(thisProcess()), { mode: 0o600 });
}

/** The process that a folder belongs to; `ended` if that has ended, undefined if the folder belongs to no process. */
export function ownerOf(folder: string): ProcessIdentity | 'ended' | undefined {
  try {
    const owner = JSON.parse(readFileSync(join(folder, ownerFile), 'utf8')) as ProcessIdentity;
    return hasEnded(owner) ? 'ended' : owner;
  } catch {
    return undefined;
  }
}
