import { Readable } from 'node:stream';
import type { Request, Response } from 'express';
import type { Operation } from '../contract/operations.ts';
import { ProblemError } from '../contract/problems.ts';
import type { Credentials } from '../cutover/forward/calls.ts';
import { requestHeaders, responseHeaders } from '../cutover/forward/headers.ts';
import { bridgeVia, type LegacyRequest, type LegacyResponse } from '../cutover/forward/legacy.ts';
import { spool, type SpooledBody } from '../cutover/forward/spool.ts';
import { authorityOf } from '../cutover/modes.ts';
import type { Admission, Cutover } from '../cutover/switch/instance.ts';
import type { Traffic } from '../cutover/traffic.ts';
import { authenticate, type AuthenticationOutcome } from '../redis/changes.ts';
import type { ReadOutcome } from '../redis/profiles.ts';
import {
  findCredentials,
  type AuthenticatedCaller,
  type AuthenticationOptions,
} from './middleware/authentication.ts';
import { callOf } from './call.ts';
import type { LoadShedding } from './middleware/load-shedding.ts';
import { networkOf } from './middleware/rate-limit.ts';
import { hasBody, replaceBody, tooLarge, whileReceiving, type BodyRules } from './middleware/receive-body.ts';
import type { Row } from './operations.ts';
import { maxUploadBytes } from './profile/multipart-body.ts';
import type { Answer } from './respond.ts';

export interface ForwardingOptions extends AuthenticationOptions {
  cutover: Pick<Cutover, 'readMode' | 'admitChange'>;
  traffic: Traffic;
  load: LoadShedding;
  /** The largest JSON body of a denylist operation, in bytes. */
  maxListBytes: number;
}

/** A caller who may make a change, as of the beginning of the request. */
export interface CheckedCaller {
  authenticated: AuthenticatedCaller;
  /** Whether the change had yet to arrive or to be admitted: then its caller is authenticated once more. */
  isLate: boolean;
}

/** The stages of the pipeline, for requests that Redis is the authority for. */
interface Stages {
  serveRead: (row: Row, request: Request, response: Response) => Promise<Answer>;
  /** Throws the problem of a caller who may not make this change. */
  checkCaller: (row: Row, request: Request, response: Response) => Promise<CheckedCaller>;
  serveChange: (
    row: Row,
    request: Request,
    response: Response,
    checked: CheckedCaller,
    admission: Admission,
  ) => Promise<Answer>;
}

/** Serves a request by the current authority; undefined if the response has been sent already. */
export type Forwarding = (
  row: Row,
  request: Request,
  response: Response,
  stages: Stages,
) => Promise<Answer | undefined>;

/** How long a client may leave its response unread before its connection is closed, in ms. */
const stallTimeout = 60_000;

/**
 * While the legacy service is the authority, forwards requests to it and relays its responses as they are. The mode of
 * a read is the one at its start; that of a change is decided once its body has arrived, so a slow upload never delays
 * a switch. Which side checks the caller before the body arrives is decided at the start. Memory is bounded: bodies are
 * spooled, responses streamed.
 */
export function createForwarding(options: ForwardingOptions): Forwarding {
  const { store, cutover, traffic, load, maxListBytes } = options;

  return async (row, request, response, stages) => {
    const known = cutover.readMode();
    const mode = typeof known === 'string' ? known : await known;
    if (mode !== 'native') refuseLoop(request);
    const isHere = authorityOf(mode) === 'redis';
    if (row.body === undefined) {
      if (isHere) return await stages.serveRead(row, request, response);
      await holdingSlot(() => forwardRead(request, response));
      return undefined;
    }
    let checked = isHere ? await stages.checkCaller(row, request, response) : undefined;
    const credentials = credentialsOf(request, response);
    const found = checked?.authenticated.found ?? (await lookUp(credentials));
    const caller = found?.kind === 'known' ? found.caller : undefined;
    // Not the key as it was sent: a client that makes up keys could then use up the limit of all others.
    const sender = caller?.keyId ?? networkOf(request.ip);
    if (!isHere) recordCaller(response, credentials, found);
    const body = await receive(row.operation, sender, request, response);
    // Streamed from the spool, so that a long list is not in memory twice.
    replaceBody(request, () => Readable.from(body.parts(), { objectMode: false }));
    let release = (): void => {};
    const end = async (): Promise<void> => {
      release();
      await body.discard();
    };
    let isForwarded = false;
    try {
      const admitted = cutover.admitChange();
      const hasWaited = admitted instanceof Promise;
      const admission = hasWaited ? await admitted : admitted;
      release = admission.release;
      if (authorityOf(admission.mode) === 'redis') {
        if (checked === undefined) checked = await stages.checkCaller(row, request, response);
        else checked.isLate ||= hasWaited;
        return await stages.serveChange(row, request, response, checked, admission);
      }
      await holdingSlot(async () => {
        isForwarded = true;
        const answered = await traffic.change({
          operation: row.operation,
          credentials,
          found,
          request: toLegacyRequest(request, response, body),
          readBody: async () => await row.body?.read(request, response),
          admission,
          end,
        });
        recordCaller(response, credentials, found, answered.status);
        await relay(response, answered);
      });
      return undefined;
    } finally {
      if (!isForwarded) await end();
    }
  };

  /** What Redis knows of a key. The legacy service judges it, so that Redis may be away. */
  async function lookUp(credentials: Credentials | undefined): Promise<AuthenticationOutcome | undefined> {
    if (credentials === undefined) return undefined;
    return await authenticate(store, credentials.base, credentials.sha256).catch(() => undefined);
  }

  async function holdingSlot(work: () => Promise<void>): Promise<void> {
    load.slots.enter();
    try {
      await work();
    } finally {
      load.slots.leave();
    }
  }

  async function receive(
    operation: Operation,
    sender: string,
    request: Request,
    response: Response,
  ): Promise<SpooledBody> {
    const limit = operation === 'putProfile' ? maxUploadBytes : maxListBytes;
    // The body is forwarded as it is, not decompressed.
    const bytes = Number(request.headers['content-length'] ?? limit);
    const rules: BodyRules = { limit, unreadable: 'malformed-request' };
    let spooling: Promise<SpooledBody> | undefined;
    const openBody = load.openBodies.enter(sender, bytes);
    try {
      return await whileReceiving(request, response, rules, async () => {
        spooling = spool(request.iterator({ destroyOnReturn: false }), limit, () => tooLarge(rules));
        return await spooling;
      });
    } catch (error) {
      if (spooling !== undefined) discardLater(spooling, request);
      throw error;
    } finally {
      openBody.leave();
    }
  }

  async function forwardRead(request: Request, response: Response): Promise<void> {
    const abandoned = new AbortController();
    response.once('close', () => {
      // Each abort creates an error with a stack: too costly for the responses that were sent completely.
      if (!response.writableFinished) abandoned.abort();
    });
    const credentials = credentialsOf(request, response);
    const { signal } = abandoned;
    const { here, answer } = traffic.read(credentials, { ...toLegacyRequest(request, response), signal });
    let status: number | undefined;
    try {
      const answered = await answer;
      ({ status } = answered);
      await relay(response, answered);
    } finally {
      recordCaller(response, credentials, await here, status);
    }
  }

  function credentialsOf(request: Request, response: Response): Credentials | undefined {
    const credentials = findCredentials(request, options);
    if (credentials === undefined) return undefined;
    const names = ['x-api-key', options.organizationHeader];
    const headers = names.flatMap((name) => [name, String(request.headers[name])]);
    return { ...credentials, headers, userAgent: callOf(response).userAgent };
  }
}

/**
 * Refuses what a bridge has sent to the legacy service: its address leads back to the bridge, as when the bridge has
 * taken over the host name.
 */
function refuseLoop(request: Request): void {
  if (request.headers.via?.includes(bridgeVia) !== true) return;
  throw new ProblemError(
    'legacy-unavailable',
    'The address of the legacy service leads back to this bridge.',
  );
}

/**
 * Records the caller of a forwarded request for the ledger: what Redis knows of their key, if it could be asked, and the
 * status with which the legacy service has answered, if it has.
 */
function recordCaller(
  response: Response,
  credentials: Credentials | undefined,
  found: AuthenticationOutcome | ReadOutcome | undefined,
  status?: number,
): void {
  const call = callOf(response);
  call.organizationId = credentials?.organizationId;
  call.caller = found !== undefined && 'caller' in found ? found.caller : undefined;
  // With another status, such as 404, the legacy service may have accepted a key that is unknown here.
  const isRefused = status === 401 || status === 403;
  const isServed = found !== undefined && status !== undefined && status < 300;
  call.isUnchecked = credentials !== undefined && !isRefused && !isServed;
}

/**
 * Discards what was received of a refused body once it ends: the rest of one that was too slow may still arrive. After
 * the response, a request does not learn by itself that its connection has closed.
 */
function discardLater(spooling: Promise<SpooledBody>, request: Request): void {
  const { socket } = request;
  const stop = (): void => void request.destroy();
  if (socket.destroyed) stop();
  else socket.once('close', stop);
  spooling
    .then((body) => body.discard())
    .catch(() => {})
    .finally(() => socket.off('close', stop));
}

function toLegacyRequest(request: Request, response: Response, body?: SpooledBody): LegacyRequest {
  const sent = body !== undefined && hasBody(request) ? body : undefined;
  return {
    method: request.method as LegacyRequest['method'],
    // A client may name the whole URL, as to a proxy (RFC 9112 §3.2.2).
    path: request.url.replace(/^https?:\/\/[^/]*/i, ''),
    headers: requestHeaders(request.rawHeaders, {
      requestId: callOf(response).requestId,
      address: request.socket.remoteAddress,
      bodyBytes: sent?.bytes,
    }),
    body: sent?.toSend(),
  };
}

/**
 * Relays a response as it comes in, no faster than the client reads it. It is read to its end even if the client has
 * left, since its outcome is adopted in any case.
 */
async function relay(response: Response, { status, headers, body }: LegacyResponse): Promise<void> {
  const call = callOf(response);
  if (!response.destroyed) {
    const all = [...call.headers, ...responseHeaders(headers)];
    // Not as a list of writeHead: once CORS has set a header, that keeps only the last of each name.
    for (let at = 0; at < all.length; at += 2) response.appendHeader(all[at] ?? '', all[at + 1] ?? '');
    response.writeHead(status);
  }
  try {
    for await (const part of body) {
      if (!response.destroyed && !response.write(part)) await untilDrained(response);
    }
  } catch (error) {
    // Too late for a problem: the client notices the broken connection.
    call.failure = `the response of the legacy service broke off: ${String(error)}`;
    response.destroy();
  }
  if (!response.destroyed) response.end();
}

async function untilDrained(response: Response): Promise<void> {
  await new Promise<void>((resolve) => {
    const settle = (): void => {
      clearTimeout(late);
      response.off('drain', settle).off('close', settle);
      resolve();
    };
    const late = setTimeout(() => response.destroy(), stallTimeout);
    response.on('drain', settle).on('close', settle);
  });
}
