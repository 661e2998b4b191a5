import type { Request } from 'express';
import type { ProblemError } from '../../contract/problems.ts';

/** Whether a request comes with a body of at least one byte, as far as its headers tell (RFC 9112 §6.3). */
export function hasBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Reads a body by `read`, and refuses it with `tooLarge` as soon as it is known to have more than `limit` bytes
 * as sent. The parsers would first read such a body to its end, and its end may never come.
 */
export async function readWithin<Body>(
  request: Request,
  limit: number,
  tooLarge: () => ProblemError,
  read: () => Promise<Body>,
): Promise<Body> {
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge();
  const reading = read();
  if (request.headers['transfer-encoding'] === undefined) return await reading;
  return await new Promise((resolve, reject) => {
    let size = 0;
    const count = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > limit) reject(tooLarge());
    };
    request.on('data', count);
    void reading.then(resolve, reject).finally(() => request.off('data', count));
  });
}
