import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { attemptWrite } from '../files/text-file.ts';

/** The position of bytes in a workspace. */
export interface Extent {
  readonly offset: number;
  readonly length: number;
}

export type Workspace = ReturnType<typeof createWorkspace>;

/**
 * A file for what does not fit into memory, in the system's folder for temporary files (TMPDIR); it is made when first
 * used. It has no name, so it is gone when this process ends, killed or not.
 */
export function createWorkspace() {
  // Asking for it costs as much as a small write.
  const folder = tmpdir();
  let file: number | undefined;
  let end = 0;
  const attempt = <Result>(work: () => Result): Result =>
    attemptWrite(folder, 'set TMPDIR to a folder on another disk', work);
  return {
    append: (bytes: Uint8Array): Extent =>
      attempt(() => {
        file ??= openNameless(folder);
        const offset = end;
        writeFileSync(file, bytes);
        end += bytes.length;
        return { offset, length: bytes.length };
      }),
    read: ({ offset, length }: Extent): Buffer => {
      const bytes = Buffer.allocUnsafe(length);
      const read = file === undefined ? 0 : readSync(file, bytes, { position: offset });
      if (read < length) throw new Error('a temporary file was cut short');
      return bytes;
    },
    close: (): void => {
      if (file !== undefined) closeSync(file);
      file = undefined;
    },
  };
}

function openNameless(folder: string): number {
  const path = join(folder, `profile-bridge-${randomUUID()}`);
  const file = openSync(path, 'wx+', 0o600);
  unlinkSync(path);
  return file;
}
