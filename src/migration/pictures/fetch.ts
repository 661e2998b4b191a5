import { readFile, realpath, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join, sep } from 'node:path';
import { Agent, buildConnector, fetch } from 'undici';
import { isPublicAddress, lookupPublic, PrivateAddress } from './addresses.ts';

/** A picture's bytes, or why there are none; the reason completes "the picture …". */
export type Fetched = { kind: 'fetched'; bytes: Buffer } | { kind: 'failed'; reason: string };

/** As much as an upload may have. */
const maxBytes = 5 * 1024 * 1024;
/** For one picture with its redirects, in ms. */
const downloadTimeout = 15_000;

export interface FetchOptions {
  /** Whether private and loopback addresses may be connected to. */
  allowPrivate: boolean;
  signal: AbortSignal;
}

const connect = buildConnector({ lookup: lookupPublic });
const anywhere = new Agent();
// Every redirect to another host is another connection, so each host on the way is checked.
const publicOnly = new Agent({
  connect: (target, callback) => {
    const host = target.hostname.replace(/^\[|\]$/g, '');
    // A literal address is never looked up.
    if (isIP(host) !== 0 && !isPublicAddress(host)) callback(new PrivateAddress(), null);
    else connect(target, callback);
  },
});

/** Fetches a picture by http or https, following redirects; every host on the way must have public addresses only. */
export async function fetchPicture(url: string, { allowPrivate, signal }: FetchOptions): Promise<Fetched> {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    return failed('has no http or https URL');
  try {
    const response = await fetch(url, {
      dispatcher: allowPrivate ? anywhere : publicOnly,
      signal: AbortSignal.any([signal, AbortSignal.timeout(downloadTimeout)]),
      headers: { accept: 'image/jpeg, image/png, image/webp, image/gif' },
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      return failed(`is answered with status ${response.status}`);
    }
    const chunks: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of response.body ?? []) {
      length += chunk.length;
      if (length > maxBytes) return tooLarge();
      chunks.push(chunk);
    }
    return { kind: 'fetched', bytes: Buffer.concat(chunks) };
  } catch (error) {
    if (signal.aborted) throw error;
    return failed(reasonOf(error));
  }
}

/**
 * Reads a picture from a folder: the file at the URL's path below it, or else of the path's last name. Nothing
 * outside the folder is ever read.
 */
export async function readPicture(url: string, folder: string): Promise<Fetched> {
  const path = pathOf(url);
  if (path === undefined) return failed('has no path that names a file');
  const root = await realpath(folder);
  for (const candidate of [path, path.split('/').at(-1) ?? '']) {
    if (candidate === '') continue;
    try {
      const file = await realpath(join(root, candidate));
      const found = await stat(file);
      if (!file.startsWith(root + sep) || !found.isFile()) continue;
      if (found.size > maxBytes) return tooLarge();
      return { kind: 'fetched', bytes: await readFile(file) };
    } catch {
      // Not there; perhaps under the other name.
    }
  }
  return failed('is not in the folder');
}

function pathOf(url: string): string | undefined {
  try {
    const path = decodeURIComponent(URL.canParse(url) ? new URL(url).pathname : (url.split(/[?#]/)[0] ?? ''));
    return path.includes('\0') ? undefined : path;
  } catch {
    return undefined;
  }
}

function tooLarge(): Fetched {
  return failed('is larger than 5 MiB');
}

function failed(reason: string): Fetched {
  return { kind: 'failed', reason };
}

function reasonOf(error: unknown): string {
  const { name, cause = error } = error as Error;
  if (name === 'AbortError' || name === 'TimeoutError') return 'is not answered in time';
  if (cause instanceof PrivateAddress)
    return 'is at a private or loopback address (--allow-private-addresses allows it)';
  const { code, message } = cause as NodeJS.ErrnoException;
  return `cannot be fetched (${code ?? message})`;
}
