import { Readable } from 'node:stream';
import { errors, Pool } from 'undici';
import { ProblemError } from '../../contract/problems.ts';
import { without } from './headers.ts';

export interface LegacyRequest {
  method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  /** Below the base URL, with the query. */
  path: string;
  /** A name, its value, the next name … */
  headers: string[];
  body?: Buffer | Readable | undefined;
  /** Aborts a request whose response nobody needs any more. */
  signal?: AbortSignal | undefined;
}

/** The legacy service's response; its body has to be read to the end. */
export interface LegacyResponse {
  status: number;
  /** A name, its value, the next name … */
  headers: string[];
  body: AsyncIterable<Buffer>;
}

export type Legacy = ReturnType<typeof connectLegacy>;

/** How long a stopping bridge waits for the legacy service, in ms. */
export const stopTimeout = 2500;

const connections = 128;

/** What every request says it has passed through (RFC 9110 §7.6.3): it must not come back. */
export const bridgeVia = '1.1 profile-bridge';

/** Responses with these statuses have no body, whatever length they announce (RFC 9110 §6.4.1). */
const bodiless = new Set([204, 304]);
const lengthHeader = new Set(['content-length']);

/** The parts of a body may be waited for this many times the timeout, all in all. */
const maxWaits = 6;

/** `baseUrl` may include a path prefix; `timeoutMs` bounds the time to the response's headers, and each pause after. */
export function connectLegacy(baseUrl: string, timeoutMs: number) {
  const { origin, pathname } = new URL(baseUrl);
  const prefix = pathname.replace(/\/+$/, '');
  const pool = new Pool(origin, {
    connections,
    pipelining: 1,
    connect: { timeout: timeoutMs },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    // Shorter than common servers keep idle connections: a request on one that is being closed would be lost.
    keepAliveTimeout: 4000,
    maxHeaderSize: 64 * 1024,
  });

  async function attempt(request: LegacyRequest): Promise<LegacyResponse> {
    const { method, path, headers: sent, body, signal } = request;
    // Undici's own limits do not count the time a request waits for a connection.
    const deadline = new AbortController();
    const late = setTimeout(() => deadline.abort(new errors.HeadersTimeoutError()), timeoutMs);
    try {
      const response = await pool.request({
        method,
        path: prefix + path,
        headers: [...sent, 'via', bridgeVia],
        body: body ?? null,
        signal: signal === undefined ? deadline.signal : AbortSignal.any([deadline.signal, signal]),
        responseHeaders: 'raw',
      });
      // A reader that stopped reading must not end the process when the connection breaks.
      response.body.on('error', () => {});
      // By responseHeaders 'raw' they are a flat list.
      const headers = response.headers as unknown as string[];
      const status = response.statusCode;
      if (!bodiless.has(status))
        return { status, headers, body: inTime(response.body, maxWaits * timeoutMs) };
      // A length that is announced and never comes is a broken connection to undici, and would be to clients.
      response.body.resume();
      return { status, headers: without(headers, lengthHeader), body: Readable.from([]) };
    } finally {
      clearTimeout(late);
    }
  }

  return {
    /** How long it may take, in ms. */
    timeoutMs,
    /**
     * Throws a 502 `legacy-unavailable` or a 504 `legacy-timeout`; whether a change took effect is then unknown, except
     * if there was no connection. A GET is sent once more if its connection was lost before the response: it may have
     * been closed as idle at that moment.
     */
    send: async (request: LegacyRequest): Promise<LegacyResponse> => {
      try {
        return await attempt(request).catch((error: unknown) => {
          if (!isSafe(request) || isTimeout(error) || request.signal?.aborted === true) throw error;
          return attempt(request);
        });
      } catch (error) {
        throw toProblem(error, isSafe(request));
      }
    },
    /** Breaks off the requests in progress; none is sent any more. */
    close: (): Promise<void> => pool.destroy(),
  };
}

/**
 * A body as it comes; throws once its parts have been waited for longer than `longest` ms: a change under way holds up
 * switches. A client that reads slowly does not count.
 */
async function* inTime(body: AsyncIterable<Buffer>, longest: number): AsyncGenerator<Buffer, void> {
  let waited = 0;
  let since = performance.now();
  for await (const part of body) {
    waited += performance.now() - since;
    if (waited > longest) throw new errors.BodyTimeoutError();
    yield part;
    since = performance.now();
  }
}

function isSafe({ method }: LegacyRequest): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** Whether a request has certainly not reached the legacy service, since there was no connection. */
export function isUndelivered(error: unknown): boolean {
  return wasUnconnected((error as Error).cause);
}

function wasUnconnected(cause: unknown): boolean {
  const { code, syscall } = (cause ?? {}) as NodeJS.ErrnoException;
  // A route that is lost after the request was sent has the same codes.
  const isConnected = syscall === 'read' || syscall === 'write';
  return (
    cause instanceof errors.ConnectTimeoutError ||
    (code !== undefined && unconnected.has(code) && !isConnected)
  );
}

const unconnected = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN']);

function isTimeout(error: unknown): boolean {
  return (
    error instanceof errors.HeadersTimeoutError ||
    error instanceof errors.BodyTimeoutError ||
    error instanceof errors.ConnectTimeoutError ||
    (error as NodeJS.ErrnoException).code === 'ETIMEDOUT'
  );
}

/** The cause is for the log; a client never sees it. */
function toProblem(cause: unknown, isRead: boolean): ProblemError {
  const isLate = isTimeout(cause);
  const detail = isLate
    ? 'The legacy service behind this bridge did not answer in time.'
    : 'The legacy service behind this bridge could not be reached, or broke the connection.';
  const outcome = wasUnconnected(cause)
    ? ' This change was not made.'
    : ' Whether the change took effect is unknown; sending the same request again is safe.';
  const code = isLate ? 'legacy-timeout' : 'legacy-unavailable';
  return Object.assign(new ProblemError(code, isRead ? detail : detail + outcome), { cause });
}
