import { once } from 'node:events';
import { pipeline } from 'node:stream/promises';
import type { Request, RequestHandler, Response } from 'express';
import type { MediaStore, OpenPicture } from '../media/store.ts';

/** Bytes of a picture in memory at a time, however slowly its client reads. */
const partBytes = 256 * 1024;

/** Evaluates If-None-Match (RFC 9110 §13.1.2) by weak comparison. The entity tags of pictures contain no comma. */
function matchesTag(ifNoneMatch: string | undefined, entityTag: string): boolean {
  return (ifNoneMatch ?? '')
    .split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
    .some((tag) => tag === '*' || tag === entityTag);
}

/**
 * Answers GET and HEAD of a route whose `:file` is a picture's name. The bytes behind a name never change, so the
 * response may be cached forever, and the name is the entity tag. A browser that opens the address as a page must not
 * run anything in it. An unknown or malformed name is left to the next handler; a MediaUnavailableError of the store is
 * passed on.
 */
export function serveMedia(store: MediaStore): RequestHandler<{ file: string }> {
  return async (request, response, next) => {
    const { file } = request.params;
    // A connection may have a hundred requests: a picture is read only once the responses before it have been sent.
    if (response.socket === null) await once(response, 'socket');
    const picture = await store.open(file, partBytes);
    if (picture === undefined) {
      next();
      return;
    }
    const entityTag = `"${file}"`;
    response.set({
      'Cache-Control': 'public, max-age=31536000, immutable',
      ETag: entityTag,
      'Accept-Ranges': 'bytes',
      'X-Content-Type-Options': 'nosniff',
      'Content-Security-Policy': "default-src 'none'; sandbox",
      'Cross-Origin-Resource-Policy': 'cross-origin',
      'Content-Disposition': 'inline',
    });
    try {
      // Express would send the picture again to clients with Cache-Control: no-cache, which fetch adds whenever a
      // script sets If-None-Match.
      if (matchesTag(request.get('If-None-Match'), entityTag)) response.status(304).end();
      else await sendBytes(request as Request, response.type(picture.type), picture, entityTag);
    } finally {
      await picture.close();
    }
  };
}

/** The range of bytes that a request asks for (RFC 9110 §14.1.2); several ranges, and other units, are ignored. */
function rangeOf(text: string | undefined, size: number): { start: number; end: number } | undefined {
  const [range, first = '', last = ''] = /^bytes=\s*(\d*)-(\d*)$/.exec(text ?? '') ?? [];
  if (range === undefined || first + last === '') return undefined;
  // "-5" is the last five bytes, or the whole picture if it is shorter.
  if (first === '') return { start: Math.max(0, size - Number(last)), end: size - 1 };
  return { start: Number(first), end: last === '' ? size - 1 : Math.min(Number(last), size - 1) };
}

/** Sends the picture, or the requested range of it. */
async function sendBytes(
  request: Request,
  response: Response,
  picture: OpenPicture,
  entityTag: string,
): Promise<void> {
  const { size } = picture;
  const isCurrent = [undefined, entityTag].includes(request.get('If-Range'));
  const range = isCurrent && request.method === 'GET' ? rangeOf(request.get('Range'), size) : undefined;
  if (range !== undefined && range.start > range.end) {
    response.removeHeader('Content-Type');
    response
      .status(416)
      .set({ 'Cache-Control': 'no-store', 'Content-Range': `bytes */${size}` })
      .end();
    return;
  }
  if (range !== undefined) {
    response.status(206).set('Content-Range', `bytes ${range.start}-${range.end}/${size}`);
  }
  const wanted = range ?? { start: 0, end: size - 1 };
  response.set('Content-Length', String(wanted.end + 1 - wanted.start));
  if (request.method === 'HEAD') response.end();
  else await pipeline(partsOf(picture, wanted), response);
}

/** The bytes of the range, in parts; each is read only once the one before it has been sent. */
async function* partsOf(
  { bytes, readFrom }: OpenPicture,
  { start, end }: { start: number; end: number },
): AsyncGenerator<Buffer, void> {
  if (start < bytes.length) yield bytes.subarray(start, end + 1);
  for (let at = Math.max(start, bytes.length); at <= end; at += partBytes) {
    const part = await readFrom(at, Math.min(partBytes, end + 1 - at));
    if (part === undefined) throw new Error('the picture was removed while it was being sent');
    yield part;
  }
}
