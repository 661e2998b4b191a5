import type { Readable, Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Request, Response } from 'express';
import { ProblemError, type ProblemCode } from '../../contract/problems.ts';

/** The bytes of a body that must arrive in each period (ms): an eighth of what 256 kbit/s carry. */
const minRate = { bytes: 40_000, periodMs: 10_000 };

/** How long a body may take in all, in ms: 5 MiB at 256 kbit/s take 164 s. */
const bodyTimeoutMs = 180_000;

/** The charsets whose text is UTF-8: ASCII is a part of it. */
export const utf8Charset = /^(utf-?8|us-ascii)$/i;

/** Whether a request has a body of at least one byte, according to its headers (RFC 9112 §6.3). */
export function hasBody({ headers }: Pick<Request, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Whether a part of a request's body has yet to be read from its connection. */
export function hasUnreadBody(request: Pick<Request, 'complete' | 'headers'>): boolean {
  return !request.complete && hasBody(request);
}

/** Whether a body is sent compressed: it can have a thousand times as many bytes as are sent. */
export function isCompressed({ headers }: Request): boolean {
  return (headers['content-encoding'] || 'identity').toLowerCase() !== 'identity';
}

/** The most bytes that a body can have once decompressed; `limit` if its Content-Length does not say so. */
export function maxBytesOf(request: Request, limit: number): number {
  return isCompressed(request) ? limit : Number(request.headers['content-length'] ?? limit);
}

type WithReplacedBody = Request & { openBody?: () => Readable };

/** Makes `receiveBody` read the stream that `openBody` opens: the request's own has been read already. */
export function replaceBody(request: WithReplacedBody, openBody: () => Readable): void {
  request.openBody = openBody;
}

/** How an operation reads its body. */
export interface BodyReader<Body> {
  /** Calls `reserve`, which may throw, with the bytes of memory that the body will take once it is parsed. */
  read: (request: Request, response: Response, reserve?: (memory: number) => void) => Promise<Body>;
  /** The longest body that the operation accepts, decompressed. */
  maxBytes: (request: Request) => number;
}

/** Which bodies an operation accepts. */
export interface BodyRules {
  /** The most bytes, as sent and decompressed. */
  limit: number;
  /** The detail of the 413 for a larger body, in place of the usual one. */
  tooLargeDetail?: string;
  /** The problem of a body that cannot be read. */
  unreadable: ProblemCode;
}

/** The 413 of a body above the limit. */
export function tooLarge({ limit, tooLargeDetail }: BodyRules): ProblemError {
  const usual = `The body is larger than the ${limit} bytes this operation accepts.`;
  return new ProblemError('payload-too-large', tooLargeDetail ?? usual);
}

/** The problem of a body that cannot be read; `reason` continues the words "The body". */
export function bodyProblem(code: ProblemCode, reason: string): ProblemError {
  return new ProblemError(code, `The body ${reason}.`);
}

/**
 * Receives the bytes of a body, decompressed. Throws a 413 as soon as a body is known to be larger than the limit, a
 * 408 where it arrives too slowly, and a 400 or 415 where it cannot be decompressed.
 */
export async function receiveBody(request: Request, response: Response, rules: BodyRules): Promise<Buffer> {
  return await whileReceiving(request, response, rules, () => readToEnd(request, rules));
}

/**
 * Reads a body by `read`, and stops if the body is too large or too slow, or its client has disconnected. A client that
 * expects 100 Continue gets it (RFC 9110 §10.1.1).
 */
export async function whileReceiving<Result>(
  request: Request,
  response: Response,
  rules: BodyRules,
  read: () => Promise<Result>,
): Promise<Result> {
  if (Number(request.headers['content-length'] ?? 0) > rules.limit) throw tooLarge(rules);
  if (request.complete) return await read();
  const { socket } = request;
  if (request.httpVersion === '1.1' && request.headers.expect?.toLowerCase() === '100-continue') {
    response.writeContinue();
  }
  if (socket.destroyed) throw bodyProblem(rules.unreadable, incomplete);
  let reject: (error: Error) => void = () => {};
  const refusal = new Promise<never>((_resolve, fail) => {
    reject = fail;
  });
  let seen = socket.bytesRead;
  let elapsedMs = 0;
  const watch = setInterval(() => {
    elapsedMs += minRate.periodMs;
    if (request.complete) return;
    const { bytes, periodMs } = minRate;
    if (socket.bytesRead - seen < bytes) {
      const reason = `arrived at less than ${bytes} bytes in ${periodMs / 1000} seconds`;
      reject(bodyProblem('request-timeout', reason));
    }
    if (elapsedMs >= bodyTimeoutMs)
      reject(bodyProblem('request-timeout', `took longer than ${bodyTimeoutMs / 1000} seconds`));
    seen = socket.bytesRead;
  }, minRate.periodMs);
  let size = 0;
  const count = (chunk: Buffer): void => {
    size += chunk.length;
    if (size > rules.limit) reject(tooLarge(rules));
  };
  const onClose = (): void => {
    if (!request.complete) reject(bodyProblem(rules.unreadable, incomplete));
  };
  // Not the request's own event: a request that was already refused emits none.
  socket.on('close', onClose);
  const reading = read();
  request.on('data', count);
  try {
    return await Promise.race([reading, refusal]);
  } finally {
    clearInterval(watch);
    socket.off('close', onClose);
    request.off('data', count);
  }
}

/**
 * Reads a body to its end. Unlike body-parser, it accepts a complete body whose client has closed its side of the
 * connection since. Chunks are copied and not kept: each takes hundreds of bytes, even if it brings a single one.
 */
async function readToEnd(request: WithReplacedBody, rules: BodyRules): Promise<Buffer> {
  const decoder = decoderOf(request);
  const stream = request.openBody?.() ?? request;
  if (stream.destroyed) throw bodyProblem(rules.unreadable, incomplete);
  const announced = decoder === undefined ? Number(request.headers['content-length'] ?? 0) : 0;
  try {
    return await new Promise((resolve, reject) => {
      // The system provides memory only when it is written to.
      let whole = Buffer.allocUnsafe(announced);
      let size = 0;
      const onClose = (): void => {
        if (!stream.readableEnded) reject(bodyProblem(rules.unreadable, incomplete));
      };
      stream.on('error', onClose).on('close', onClose);
      decoder?.on('error', () => reject(bodyProblem(rules.unreadable, 'could not be decompressed')));
      const source = decoder === undefined ? stream : stream.pipe(decoder);
      source.on('data', (chunk: Buffer) => {
        const end = size + chunk.length;
        if (end > rules.limit) {
          reject(tooLarge(rules));
          return;
        }
        if (end > whole.length)
          whole = Buffer.concat([whole.subarray(0, size)], Math.min(2 * end, rules.limit));
        chunk.copy(whole, size);
        size = end;
      });
      source.on('end', () => resolve(whole.subarray(0, size)));
    });
  } finally {
    if (decoder !== undefined) {
      stream.unpipe(decoder).resume();
      decoder.destroy();
    }
  }
}

const decoders = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
]);

/** What decompresses a body (RFC 9110 §8.4); undefined if it is not compressed. Throws a 415 for other codings. */
function decoderOf(request: Request): Transform | undefined {
  if (!isCompressed(request)) return undefined;
  const create = decoders.get(request.headers['content-encoding']?.toLowerCase() ?? '');
  if (create !== undefined) return create();
  const detail = 'The Content-Encoding is not supported: send gzip, deflate, br or none.';
  throw new ProblemError('unsupported-media-type', detail);
}

const incomplete = 'ended before its announced length';
