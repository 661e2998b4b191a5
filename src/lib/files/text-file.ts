import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, writeFileSync } from 'node:fs';

/** A file could not be written; the message is one line with the remedy. */
export class WriteError extends Error {
  override readonly name = 'WriteError';
}

/** A file that text is written to. Both of its functions throw WriteErrors. */
export type TextFile = ReturnType<typeof createTextFile>;

/** Characters collected before they are written. */
const blockLength = 64 * 1024;

/** Runs `work`, which writes to a file. Its errors become WriteErrors, whose messages end with the `remedy`. */
export function attemptWrite<Result>(path: string, remedy: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    const { code = 'error' } = error as NodeJS.ErrnoException;
    const isFull = code === 'ENOSPC' || code === 'EDQUOT';
    throw new WriteError(
      isFull
        ? `${path} cannot be written (${code}, no space is left): free some space, or ${remedy}`
        : `${path} cannot be written (${code}): ${remedy}`,
    );
  }
}

/**
 * Creates a file that only this user can read; an existing one is emptied by the first `write`. `remedy` as for
 * `attemptWrite`.
 */
export function createTextFile(path: string, remedy: string) {
  const attempt = <Result>(work: () => Result): Result => attemptWrite(path, remedy, work);
  let file: number | undefined = attempt(() => openSync(path, 'a', 0o600));
  // A pipe or a device can be neither truncated nor synced.
  const isFile = fstatSync(file).isFile();
  let isEmptied = false;
  let text = '';
  const empty = (): void => {
    if (file !== undefined && isFile) ftruncateSync(file);
    isEmptied = true;
  };
  const flush = (): void => {
    const block = text;
    text = '';
    if (file !== undefined) writeFileSync(file, block);
  };
  return {
    write: (more: string): void => {
      if (!isEmptied) attempt(empty);
      text += more;
      if (text.length >= blockLength) attempt(flush);
    },
    /** Flushes the text to the disk and closes the file. Safe to call twice. */
    close: (): void => {
      if (file === undefined) return;
      const open = file;
      try {
        attempt(() => {
          flush();
          if (isFile) fsyncSync(open);
        });
      } finally {
        file = undefined;
        closeSync(open);
      }
    },
  };
}
