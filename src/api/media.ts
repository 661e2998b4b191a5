import { once } from 'node:events';
import type { Request, RequestHandler, Response } from 'express';
import type { MediaStore } from '../media/store.ts';

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
    const found = await store.read(file);
    if (found === undefined) {
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
    // Express would send the picture again to clients with Cache-Control: no-cache, which fetch adds whenever a script
    // sets If-None-Match.
    if (holds(request.get('If-None-Match'), entityTag)) response.status(304).end();
    else sendBytes(request as Request, response.type(found.type), found.bytes, entityTag);
  };
}

/** Sends the bytes, or the one requested range of them (RFC 9110 §14); several ranges are ignored. */
function sendBytes(request: Request, response: Response, bytes: Buffer, entityTag: string): void {
  const isCurrent = [undefined, entityTag].includes(request.get('If-Range'));
  const ranges =
    isCurrent && request.method === 'GET' ? request.range(bytes.length, { combine: true }) : undefined;
  const [range, ...others] = Array.isArray(ranges) && ranges.type === 'bytes' ? ranges : [];
  if (ranges === -1) {
    response.removeHeader('Content-Type');
    response
      .status(416)
      .set({ 'Cache-Control': 'no-store', 'Content-Range': `bytes */${bytes.length}` })
      .end();
  } else if (range !== undefined && others.length === 0) {
    const { start, end } = range;
    response.status(206).set('Content-Range', `bytes ${start}-${end}/${bytes.length}`);
    response.send(bytes.subarray(start, end + 1));
  } else {
    response.send(bytes);
  }
}
