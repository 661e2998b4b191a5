import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { RequestHandler } from 'express';

/** Serves a text, compressed for clients that accept it, and answers 304 to those that already have it. */
export function staticText(type: string, text: string, contentSecurityPolicy?: string): RequestHandler {
  const plain = Buffer.from(text);
  const gzipped = gzipSync(plain);
  // Weak, since both encodings have it (RFC 9110 §8.8.1).
  const etag = `W/"${createHash('sha256').update(plain).digest('base64url')}"`;
  return (request, response) => {
    response.set({
      'Cache-Control': 'no-cache',
      ETag: etag,
      'X-Content-Type-Options': 'nosniff',
      ...(contentSecurityPolicy !== undefined && { 'Content-Security-Policy': contentSecurityPolicy }),
    });
    // Added rather than set: where origins are configured, Vary names Origin already.
    response.vary('Accept-Encoding');
    if (request.fresh) {
      response.status(304).end();
      return;
    }
    const compressed = request.acceptsEncodings('gzip', 'identity') === 'gzip';
    if (compressed) response.setHeader('Content-Encoding', 'gzip');
    response.setHeader('Content-Type', type);
    response.setHeader('Content-Length', compressed ? gzipped.length : plain.length);
    response.end(compressed ? gzipped : plain);
  };
}
