import type { RequestHandler } from 'express';
import type { MediaStore } from '../media/store.ts';

/** RFC 9110 §13.1.2, by weak comparison; an entity tag of ours has no comma in it. */
function holds(ifNoneMatch: string | undefined, entityTag: string): boolean {
  return (ifNoneMatch ?? '')
    .split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
    .some((tag) => tag === '*' || tag === entityTag);
}

/**
 * Answers GET and HEAD of a route whose `:file` is a picture's name. A name never changes its bytes, so that
 * it is cached for good and is its own entity tag (304 by If-None-Match, RFC 9110 §13.1.2). Should a browser
 * be led to open the address as a page, it finds a picture without any right. An unknown or malformed name is
 * left to the next handler; a store out of reach is passed on as its MediaUnavailableError.
 */
export function serveMedia(store: MediaStore): RequestHandler<{ file: string }> {
  return async (request, response, next) => {
    const { file } = request.params;
    const found = await store.read(file);
    if (found === undefined) {
      next();
      return;
    }
    const entityTag = `"${file}"`;
    response.set({
      'Cache-Control': 'public, max-age=31536000, immutable',
      ETag: entityTag,
      'X-Content-Type-Options': 'nosniff',
      'Content-Security-Policy': "default-src 'none'; sandbox",
      'Cross-Origin-Resource-Policy': 'cross-origin',
      'Content-Disposition': 'inline',
    });
    // Not left to Express, which sends the picture again to those who say Cache-Control: no-cache, as fetch
    // does whenever a script gives a tag.
    if (holds(request.get('If-None-Match'), entityTag)) response.status(304).end();
    else response.set('Content-Type', found.type).send(found.bytes);
  };
}
