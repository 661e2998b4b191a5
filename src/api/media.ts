import { once } from 'node:events';
import { pipeline } from 'node:stream/promises';
import type { Request, RequestHandler, Response } from 'express';
import type { MediaStore, OpenPicture } from '../media/store.ts';

/** So much of a picture is in memory at a time, however slowly its client reads. */
const partBytes = 256 * 1024;

/** RFC 9110 §13.1.2, by weak comparison. The entity tags of pictures contain no comma. */
function holds(ifNoneMatch: string | undefined, entityTag: string): boolean {
  return (ifNoneMatch ?? '')
    .split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
    .some((tag) => tag === '*' || tag === entityTag);
}

/**
 * Answers GET and HEAD of a route whose `:file` is a picture's name. The bytes behind a name never change, so the
 * response may be cached forever, and the name is its own entity tag (If-None-Match, RFC 9110 §13.1.2). A browser that
 * opens the address as a page must not run anything in it. An unknown or malformed name is left to the next handler; a
 * MediaUnavailableError of the store is passed on.
 */
export function serveMedia(store: MediaStore): RequestHandler<{ file: string }> {
  return async (request, response, next) => {
    const { file } = request.params;
    // One connection may have sent a hundred requests: a picture is read once the responses before it have been sent.
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
      if (holds(request.get('If-None-Match'), entityTag)) response.status(304).end();
      else await sendBytes(request as Request, response.type(picture.type), picture, entityTag);
    } finally {
      await picture.close();
    }
  };
}

/** Sends the picture, or the one requested range of it (RFC 9110 §14); several ranges are ignored. */
async function sendBytes(
  request: Request,
  response: Response,
  picture: OpenPicture,
  entityTag: string,
): Promise<void> {
  const { size } = picture;
  const isCurrent = [undefined, entityTag].includes(request.get('If-Range'));
  const ranges = isCurrent && request.method === 'GET' ? request.range(size, { combine: true }) : undefined;
  const [range, ...others] = Array.isArray(ranges) && ranges.type === 'bytes' ? ranges : [];
  if (ranges === -1) {
    response.removeHeader('Content-Type');
    response
      .status(416)
      .set({ 'Cache-Control': 'no-store', 'Content-Range': `bytes */${size}` })
      .end();
    return;
  }
  let wanted = { start: 0, end: size - 1 };
  if (range !== undefined && others.length === 0) {
    wanted = range;
    response.status(206).set('Content-Range', `bytes ${range.start}-${range.end}/${size}`);
  }
  response.set('Content-Length', String(wanted.end + 1 - wanted.start));
  if (request.method === 'HEAD') response.end();
  else await pipeline(partsOf(picture, wanted), response);
}

/** Its bytes, each part read only once the one before it has been sent. */
async function* partsOf(
  { bytes, readOn }: OpenPicture,
  { start, end }: { start: number; end: number },
): AsyncGenerator<Buffer, void> {
  if (start < bytes.length) yield bytes.subarray(start, end + 1);
  for (let at = Math.max(start, bytes.length); at <= end; at += partBytes) {
    const part = await readOn(at, Math.min(partBytes, end + 1 - at));
    if (part === undefined) throw new Error('the picture was removed while it was being sent');
    yield part;
  }
}
