import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import { valuesOf } from './headers.ts';
import type { LegacyResponse } from './legacy.ts';

/** Responses are read and decompressed up to this many bytes: more than any list of names has. */
export const maxResponseBytes = 32 * 1024 * 1024;

const decoders: Record<string, (bytes: Buffer, limit: { maxOutputLength: number }) => Promise<Buffer>> = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
};

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Passes a stream on; `onEnd` gets all of it, or nothing if it was too long, broke off or was not read to its end. */
export async function* observed(
  source: AsyncIterable<Buffer>,
  longest: number,
  onEnd: (whole: Buffer | undefined) => void,
): AsyncGenerator<Buffer, void> {
  let parts: Buffer[] | undefined = [];
  let bytes = 0;
  let whole: Buffer | undefined;
  try {
    for await (const part of source) {
      bytes += part.length;
      if (bytes > longest) parts = undefined;
      parts?.push(part);
      yield part;
    }
    whole = parts && Buffer.concat(parts, bytes);
  } finally {
    onEnd(whole);
  }
}

/** A response's whole body; undefined if it is too long. */
export async function bodyOf({ body }: Pick<LegacyResponse, 'body'>): Promise<Buffer | undefined> {
  let whole: Buffer | undefined;
  for await (const _ of observed(body, maxResponseBytes, (read) => (whole = read)));
  return whole;
}

/** What a response's body says: undefined if it is blank or says null, null if it is not JSON, or too long. */
export async function readAnswer(
  { headers }: Pick<LegacyResponse, 'headers'>,
  bytes: Buffer | undefined,
): Promise<unknown> {
  if (bytes?.length === 0) return undefined;
  try {
    let decoded = bytes;
    for (const coding of codingsOf(headers).toReversed()) {
      decoded = decoded && (await decoders[coding]?.(decoded, { maxOutputLength: maxResponseBytes }));
    }
    if (decoded === undefined) return null;
    const text = utf8.decode(decoded);
    return text.trim() === '' ? undefined : ((JSON.parse(text) as unknown) ?? undefined);
  } catch {
    return null;
  }
}

/** In the order in which they were applied (RFC 9110 §8.4). */
function codingsOf(headers: readonly string[]): string[] {
  return valuesOf(headers, 'content-encoding')
    .flatMap((value) => value.toLowerCase().split(','))
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity');
}
