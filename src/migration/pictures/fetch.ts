import { request as requestHttp, type IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import { readFile, realpath, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join, sep } from 'node:path';
import { isPublicAddress, lookupPublic, PrivateAddress } from './addresses.ts';

/** A picture's bytes, or why there are none; the reason completes "the picture …". */
export type Fetched = { kind: 'fetched'; bytes: Buffer } | { kind: 'failed'; reason: string };

/** As much as an upload may have. */
const maxBytes = 5 * 1024 * 1024;
const maxRedirects = 5;
/** For one request, its redirects apart, in ms. */
const downloadTimeout = 15_000;

export interface FetchOptions {
  /** Whether addresses of the own network and machine may be asked. */
  allowPrivate: boolean;
  signal: AbortSignal;
}

/** Fetches a picture by http or https, following redirects; every host on the way must have public addresses only. */
export async function fetchPicture(url: string, options: FetchOptions): Promise<Fetched> {
  let next = url;
  for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
    const target = URL.canParse(next) ? new URL(next) : undefined;
    if (target === undefined || !/^https?:$/.test(target.protocol)) {
      return failed(redirects === 0 ? 'has no http or https URL' : 'is redirected to no http or https URL');
    }
    try {
      const answer = await ask(target, options);
      if (answer.kind !== 'redirect') return answer;
      next = new URL(answer.location, target).href;
    } catch (error) {
      if (options.signal.aborted) throw error;
      return failed(reasonOf(error));
    }
  }
  return failed(`is redirected more than ${maxRedirects} times`);
}

type Answer = Fetched | { kind: 'redirect'; location: string };

async function ask(target: URL, { allowPrivate, signal }: FetchOptions): Promise<Answer> {
  const host = target.hostname.replace(/^\[|\]$/g, '');
  // A literal address is never looked up.
  if (!allowPrivate && isIP(host) !== 0 && !isPublicAddress(host)) throw new PrivateAddress();
  const request = target.protocol === 'https:' ? requestHttps : requestHttp;
  const limit = AbortSignal.any([signal, AbortSignal.timeout(downloadTimeout)]);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(
      target,
      {
        signal: limit,
        headers: { accept: 'image/jpeg, image/png, image/webp, image/gif' },
        ...(!allowPrivate && { lookup: lookupPublic }),
      },
      resolve,
    );
    sent.on('error', reject);
    sent.end();
  });
  const { statusCode = 0, headers } = response;
  if (statusCode >= 300 && statusCode < 400 && headers.location !== undefined) {
    response.destroy();
    return { kind: 'redirect', location: headers.location };
  }
  if (statusCode !== 200) {
    response.destroy();
    return failed(`is answered with status ${statusCode}`);
  }
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    chunks.push(chunk as Buffer);
    length += (chunk as Buffer).length;
    if (length > maxBytes) {
      response.destroy();
      return tooLarge();
    }
  }
  return { kind: 'fetched', bytes: Buffer.concat(chunks) };
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
  if (error instanceof PrivateAddress) {
    return 'is at a private or loopback address (--allow-private-addresses allows it)';
  }
  const { code, name } = Object(error) as { code?: unknown; name?: unknown };
  if (name === 'AbortError' || name === 'TimeoutError') return 'is not answered in time';
  return `cannot be fetched (${typeof code === 'string' ? code : String(name)})`;
}
