import express, { type Request, type Response } from 'express';
import { ProblemError } from '../../contract/problems.ts';

/** The least bytes of a body per period (ms): an eighth of what a connection of 256 kbit/s carries. */
const slowest = { bytes: 40_000, periodMs: 10_000 };

/** How long a body may take in all, in ms: 5 MiB at 256 kbit/s take 164 s. */
const longestMs = 180_000;

/** Whether a request has a body of at least one byte, according to its headers (RFC 9112 §6.3). */
export function hasBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** How an operation refuses a body; `reason` continues the words "The body". */
export interface BodyProblems {
  tooLarge: () => ProblemError;
  unreadable: (reason: string) => ProblemError;
}

/** The usual problem of a body above its limit. */
export function bodyTooLarge(limit: number): ProblemError {
  const detail = `The body is larger than the ${limit} bytes this operation accepts.`;
  return new ProblemError('payload-too-large', detail);
}

/** Receives the bytes of a body, decompressed. */
export type BodyReceiver = (request: Request, response: Response) => Promise<Buffer>;

/**
 * Receives bodies of at most `limit` bytes, as sent and decompressed. Throws a 413 of `tooLarge` as soon as a body is
 * known to be larger, a 408 where it arrives too slowly, and a 400 or 415 where it cannot be decompressed.
 */
export function createBodyReceiver(limit: number, problems: BodyProblems): BodyReceiver {
  const parse = express.raw({ type: () => true, limit });
  const read = (request: Request, response: Response): Promise<void> =>
    new Promise((resolve, reject) => {
      parse(request, response, (error?: unknown) => {
        if (error === undefined) resolve();
        else reject(toProblem(error, problems));
      });
    });

  return async (request, response) => {
    // The parser alone would wait for the end of a chunked body, which may never arrive.
    await whileReceiving(request, response, limit, problems, () => read(request, response));
    // The parser treats a body whose socket has ended as absent.
    if (!request.complete) throw problems.unreadable(incomplete);
    const body: unknown = request.body;
    return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
  };
}

/**
 * Reads a body by `read`, and stops reading where the body is too large or too slow, or its client has disconnected. A
 * client that expects 100 Continue gets it (RFC 9110 §10.1.1).
 */
export async function whileReceiving<Result>(
  request: Request,
  response: Response,
  limit: number,
  { tooLarge, unreadable }: BodyProblems,
  read: () => Promise<Result>,
): Promise<Result> {
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge();
  if (request.complete) return await read();
  const { socket } = request;
  if (expectsContinue(request)) response.writeContinue();
  if (socket.destroyed) throw unreadable(incomplete);
  let reject: (error: Error) => void = () => {};
  const refusal = new Promise<never>((_resolve, fail) => {
    reject = fail;
  });
  refusal.catch(() => {});
  let seen = socket.bytesRead;
  let elapsedMs = 0;
  const watch = setInterval(() => {
    elapsedMs += slowest.periodMs;
    if (request.complete) return;
    if (socket.bytesRead - seen < slowest.bytes) reject(tooSlow());
    if (elapsedMs >= longestMs) reject(tooLong());
    seen = socket.bytesRead;
  }, slowest.periodMs);
  let size = 0;
  const count = (chunk: Buffer): void => {
    size += chunk.length;
    if (size > limit) reject(tooLarge());
  };
  const onClose = (): void => {
    if (!request.complete) reject(unreadable(incomplete));
  };
  // Not the request's own event: a request that has been refused already emits none.
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

function expectsContinue({ headers, httpVersion }: Request): boolean {
  return httpVersion === '1.1' && headers.expect?.toLowerCase() === '100-continue';
}

/** What body-parser throws has a `type`; an error that it does not know is passed on. */
function toProblem(error: unknown, { tooLarge, unreadable }: BodyProblems): unknown {
  const { type, status } = error as { type?: string; status?: number };
  switch (type) {
    case 'entity.too.large':
      return tooLarge();
    case 'encoding.unsupported':
      return new ProblemError(
        'unsupported-media-type',
        'The Content-Encoding is not supported: send gzip, deflate, br or none.',
      );
    case 'request.aborted':
    case 'request.size.invalid':
      return unreadable(incomplete);
    default:
      return status === 400 ? unreadable('could not be decompressed') : error;
  }
}

const incomplete = 'ended before its announced length';

function tooSlow(): ProblemError {
  const { bytes, periodMs } = slowest;
  return new ProblemError(
    'request-timeout',
    `The body arrived at less than ${bytes} bytes in ${periodMs / 1000} seconds.`,
  );
}

function tooLong(): ProblemError {
  return new ProblemError('request-timeout', `The body took longer than ${longestMs / 1000} seconds.`);
}
