import { readFileSync } from 'node:fs';
import type { ConnectOptions } from './connect.ts';

/** Files that hold what does not belong into a URL or the environment: PEM texts, and a password. */
export interface SecretFiles {
  ca?: string | undefined;
  cert?: string | undefined;
  key?: string | undefined;
  password?: string | undefined;
}

/** Reads the files. Throws one line with the remedy for one that cannot be read. */
export function readSecrets({ ca, cert, key, password }: SecretFiles): ConnectOptions {
  const read = (file: string | undefined): string | undefined =>
    file === undefined ? undefined : readSecret(file);
  const tls = { ca: read(ca), cert: read(cert), key: read(key) };
  // The line feed that editors add at the end is not part of a password.
  return { tls, password: read(password)?.replace(/\r?\n$/, '') };
}

function readSecret(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(`${file} cannot be read (${code}): let this user read it, or name another file`, {
      cause: error,
    });
  }
}
