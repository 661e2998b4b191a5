import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Request, Response } from 'express';
import type { Operation } from '../contract/operations.ts';
import { ProblemError } from '../contract/problems.ts';
import type { DenylistRequest } from '../cutover/adopt/denylist.ts';
import { requestHeaders, responseHeaders } from '../cutover/forward/headers.ts';
import type { LegacyRequest } from '../cutover/forward/legacy.ts';
import { spool, type SpooledBody } from '../cutover/forward/spool.ts';
import { authorityOf } from '../cutover/modes.ts';
import type { Admission, Cutover } from '../cutover/switch/instance.ts';
import type { ChangeOperation, Credentials, Forwarded, Traffic } from '../cutover/traffic.ts';
import { authenticate } from '../redis/api-keys/callers.ts';
import { findCredentials, type AuthenticationOptions } from './authentication.ts';
import { callOf } from './call.ts';
import type { LoadShedding } from './middleware/load-shedding.ts';
import { bodyTooLarge, hasBody, whileReceiving } from './middleware/receive-body.ts';
import type { Row } from './operations.ts';
import type { Answer } from './respond.ts';

export interface ForwardingOptions extends AuthenticationOptions {
  cutover: Pick<Cutover, 'readMode' | 'admitChange'>;
  traffic: Traffic;
  load: LoadShedding;
  /** The largest JSON body of a denylist operation, in bytes. */
  maxListBytes: number;
}

/** Serves a request by the authority of the moment; undefined where the response has been sent. */
export type Forwarding = (
  row: Row,
  request: Request,
  response: Response,
  serveHere: (row: Row, request: Request, response: Response, admission?: Admission) => Promise<Answer>,
) => Promise<Answer | undefined>;

/** How long a client may leave its response unread before its connection is cut, in ms. */
const longestStall = 60_000;

/** The largest body of PUT profile, a picture with what surrounds it. */
const maxProfileBytes = 7 * 1024 * 1024;

/**
 * While the legacy service is the authority, forwards requests to it and relays its responses as they are. The mode
 * of a read is that of its beginning; that of a change is decided once its body is there, so a slow upload never holds
 * up a switch. Memory is bounded: bodies are spooled, responses streamed.
 */
export function createForwarding(options: ForwardingOptions): Forwarding {
  const { cutover, traffic, load, maxListBytes } = options;

  return async (row, request, response, serveHere) => {
    if (row.body === undefined) {
      const mode = cutover.readMode();
      const authority = authorityOf(typeof mode === 'string' ? mode : await mode);
      if (authority === 'redis') return await serveHere(row, request, response);
      await holdingSlot(() => forwardRead(request, response));
      return undefined;
    }
    const body = await receive(row.operation, request, response);
    const admission = await admit(body);
    const end = async (): Promise<void> => {
      admission.release();
      await body.discard();
    };
    if (authorityOf(admission.mode) === 'redis') {
      try {
        return await serveHere(row, await replayed(request, body), response, admission);
      } finally {
        await end();
      }
    }
    let isForwarded = false;
    try {
      await holdingSlot(() => {
        isForwarded = true;
        return forwardChange(row, request, response, body, admission, end);
      });
    } finally {
      if (!isForwarded) await end();
    }
    return undefined;
  };

  async function admit(body: SpooledBody): Promise<Admission> {
    try {
      return await cutover.admitChange();
    } catch (error) {
      await body.discard();
      throw error;
    }
  }

  async function holdingSlot(work: () => Promise<void>): Promise<void> {
    load.slots.enter();
    try {
      await work();
    } finally {
      load.slots.leave();
    }
  }

  async function receive(operation: Operation, request: Request, response: Response): Promise<SpooledBody> {
    const limit = operation === 'putProfile' ? maxProfileBytes : maxListBytes;
    const problems = {
      tooLarge: () => bodyTooLarge(limit),
      unreadable: (reason: string) => new ProblemError('malformed-request', `The body ${reason}.`),
    };
    const sender = await senderOf(request);
    load.openBodies.enter(sender, request);
    try {
      return await whileReceiving(request, response, limit, problems, () =>
        spool(request.iterator({ destroyOnReturn: false }), limit, problems.tooLarge),
      );
    } finally {
      load.openBodies.leave(sender, request);
    }
  }

  /**
   * Who sends a body: the key if Redis knows it, otherwise the address. A client that makes keys up could otherwise use
   * up the limit of all.
   */
  async function senderOf(request: Request): Promise<string> {
    const { base, sha256 } = findCredentials(request, options) ?? {};
    if (base !== undefined && sha256 !== undefined) {
      try {
        const found = await authenticate(options.store, base, sha256);
        if (found.kind === 'known') return found.caller.keyId;
      } catch {
        // Redis is away: the legacy service answers all the same.
      }
    }
    return request.ip ?? '';
  }

  async function forwardRead(request: Request, response: Response): Promise<void> {
    const abandoned = new AbortController();
    response.once('close', () => {
      // Each abort makes an error with its stack: not for every response that was sent whole.
      if (!response.writableFinished) abandoned.abort();
    });
    const forwarded = await traffic.read(noteCredentials(request, response), {
      ...toLegacyRequest(request, response),
      signal: abandoned.signal,
    });
    await relay(response, forwarded);
  }

  /** `end` is called once when all that belongs to the change has ended, which may be after the response. */
  async function forwardChange(
    row: Row,
    request: Request,
    response: Response,
    body: SpooledBody,
    admission: Admission,
    end: () => Promise<void>,
  ): Promise<void> {
    const credentials = noteCredentials(request, response);
    const toSend = toLegacyRequest(request, response, body);
    await relay(
      response,
      await traffic.change({
        operation: row.operation as ChangeOperation,
        credentials,
        request: toSend,
        readDenylistRequest: async () => await denylistRequest(row, await replayed(request, body), response),
        admission,
        end,
      }),
    );
  }

  function noteCredentials(request: Request, response: Response): Credentials | undefined {
    const credentials = findCredentials(request, options);
    callOf(response).organizationId = credentials?.organizationId;
    if (credentials === undefined) return undefined;
    const names = ['x-api-key', options.organizationHeader];
    const headers = names.flatMap((name) => [name, String(request.headers[name])]);
    return { ...credentials, headers, userAgent: request.headers['user-agent'] };
  }
}

/** What a denylist operation asks for, by the rules of the contract. */
async function denylistRequest(row: Row, request: Request, response: Response): Promise<DenylistRequest> {
  const body = await row.body?.(request, response);
  return row.operation === 'banUsernames'
    ? { operation: row.operation, replacements: body as ReadonlyMap<string, string> }
    : {
        operation: row.operation as 'removeDeniedUsernames' | 'overwriteDenylist',
        usernames: body as readonly string[],
      };
}

function toLegacyRequest(request: Request, response: Response, body?: SpooledBody): LegacyRequest {
  const sent = body !== undefined && hasBody(request) ? body : undefined;
  return {
    method: request.method as LegacyRequest['method'],
    path: request.url,
    headers: requestHeaders(request.rawHeaders, {
      requestId: callOf(response).requestId,
      address: request.socket.remoteAddress,
      bodyBytes: sent?.bytes,
    }),
    body: sent,
  };
}

/**
 * Relays a response as it comes in, no faster than the client reads it. It is read to its end even where the client
 * has left: what it means is adopted all the same.
 */
async function relay(response: Response, { status, headers, body, caller }: Forwarded): Promise<void> {
  const call = callOf(response);
  if (!response.destroyed) response.writeHead(status, [...call.headers, ...responseHeaders(headers)]);
  try {
    for await (const part of body) {
      if (!response.destroyed && !response.write(part)) await untilDrained(response);
    }
  } catch (error) {
    // Too late for a problem: the client notices by the connection.
    call.failure = `the response of the legacy service broke off: ${String(error)}`;
    response.destroy();
  }
  if (!response.destroyed) response.end();
  // For the ledger; it has been looked up meanwhile.
  call.caller = await caller;
}

async function untilDrained(response: Response): Promise<void> {
  const settled = new AbortController();
  const { signal } = settled;
  const late = setTimeout(() => response.destroy(), longestStall);
  try {
    await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]);
  } catch {
    // A broken connection is noticed by the next write.
  } finally {
    clearTimeout(late);
    // Otherwise each wait would leave a listener behind.
    settled.abort();
  }
}

/** The request again, for handlers that read its body: its own stream has been read already. */
async function replayed(request: Request, body: SpooledBody): Promise<Request> {
  const again = new (request.constructor as typeof IncomingMessage)(request.socket) as Request;
  const { method, url, headers, rawHeaders, httpVersion, httpVersionMajor, httpVersionMinor } = request;
  Object.assign(again, { method, url, headers, rawHeaders, httpVersion, httpVersionMajor, httpVersionMinor });
  again.complete = true;
  again.push(await body.read());
  again.push(null);
  return again;
}
