import { isIP } from 'node:net';
import { Agent, buildConnector, fetch } from 'undici';
import { isPublicAddress, lookupPublic, PrivateAddressError } from './addresses.ts';

/** Why a picture cannot be copied; the message completes "the picture …". */
export class PictureError extends Error {}

/** The limit of an upload. */
export const maxPictureBytes = 5 * 1024 * 1024;
/** The time limit for one picture with its redirects, in ms. */
const downloadTimeout = 15_000;

const connect = buildConnector({ lookup: lookupPublic });
const anywhere = new Agent();
// Every redirect to another host is another connection, so each host on the way is checked.
const publicOnly = new Agent({
  connect: (target, callback) => {
    const host = target.hostname.replace(/^\[|\]$/g, '');
    // A literal address is never looked up.
    if (isIP(host) !== 0 && !isPublicAddress(host)) callback(new PrivateAddressError(), null);
    else connect(target, callback);
  },
});

/**
 * Fetches a picture over HTTP or HTTPS, following redirects; every host on the way must have public addresses only,
 * unless private and loopback addresses are allowed. Rejects with a PictureError if it cannot be had.
 */
export async function fetchPicture(
  url: string,
  { allowPrivate, signal }: { allowPrivate: boolean; signal: AbortSignal },
): Promise<Buffer> {
  const { protocol, username, password } = URL.canParse(url) ? new URL(url) : new URL('none:');
  if (!/^https?:$/.test(protocol)) throw new PictureError('has no http or https URL');
  // fetch would reject it with an error that quotes the whole URL, password included.
  if (username + password !== '') throw new PictureError('has a user or a password in its URL');
  // AbortSignal.timeout would not do: within AbortSignal.any, it is collected as garbage and never fires.
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), downloadTimeout);
  try {
    const response = await fetch(url, {
      dispatcher: allowPrivate ? anywhere : publicOnly,
      signal: AbortSignal.any([signal, late.signal]),
      headers: { accept: 'image/jpeg, image/png, image/webp, image/gif' },
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new PictureError(`is answered with status ${response.status}`);
    }
    const chunks: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of response.body ?? []) {
      length += chunk.length;
      if (length > maxPictureBytes) throw tooLarge();
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } catch (error) {
    throw signal.aborted || error instanceof PictureError ? error : new PictureError(reasonOf(error));
  } finally {
    clearTimeout(timer);
  }
}

export function tooLarge(): PictureError {
  return new PictureError('is larger than 5 MiB');
}

function reasonOf(error: unknown): string {
  const { name, cause = error } = error as Error;
  if (name === 'AbortError') return 'is not answered in time';
  if (cause instanceof PrivateAddressError)
    return 'is at a private or loopback address (--allow-private-addresses allows it)';
  const { code, message } = cause as NodeJS.ErrnoException;
  return `cannot be fetched (${code ?? message})`;
}
