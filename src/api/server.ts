import { once } from 'node:events';
import { createServer, IncomingMessage, ServerResponse, type RequestListener, type Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import express, { type Express } from 'express';
import type { TargetCheck } from '../lib/hosts.ts';
import { hasLaterRequest } from './call.ts';
import {
  lingerMs,
  refusedConnections,
  refuseUnreadable,
  responseInProgress,
  startLingeringClose,
} from './middleware/malformed-requests.ts';
import { hasUnreadBody } from './middleware/receive-body.ts';
import { baseUrlOf } from './respond.ts';

/** How long a draining server still accepts connections, and then waits for requests on idle ones, in ms. */
const drainPause = 300;
/** How long a draining server waits for requests in progress before it closes their connections, in ms. */
const drainTimeout = 3500;

/**
 * How long a client may leave a response unread, or its connection unused, before the connection is closed, in ms.
 * Node.js waits twice as long if a part of the response was sent.
 */
const inactivityTimeout = 60_000;

/** A port that cannot be opened; `message` is one line with the remedy. */
export class PortError extends Error {
  readonly inUse: boolean;

  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.inUse = (cause as NodeJS.ErrnoException).code === 'EADDRINUSE';
  }
}

/**
 * Serves the app on a port. Rejects with a PortError that names the variables of host and port, which begin with
 * `prefix`.
 */
export async function listen(
  app: Express,
  host: string,
  port: number,
  { prefix = '', timeout = inactivityTimeout }: { prefix?: '' | 'ADMIN_'; timeout?: number } = {},
) {
  let draining = false;
  const answer: RequestListener = (request, response) => {
    // This connection is closing: requests after the last response are discarded, and so are their bodies.
    if (request.socket.writableEnded || request.socket.destroyed) {
      request.resume();
      return;
    }
    const { url = '' } = request;
    const isValidTarget = url.startsWith('/') || url === '*' || (absoluteForm.test(url) && URL.canParse(url));
    const invalidTarget = 'a target that is neither a path nor an http URL';
    const targetFault = isValidTarget ? headerFault(request) : invalidTarget;
    (response as express.Response).locals = { targetFault } satisfies TargetCheck;
    // Express finds no path in any other target, and would answer with a page of its own.
    if (!isValidTarget) request.url = '*';
    app(request as express.Request, response as express.Response);
  };
  const classes = requestAndResponseOf(app, () => draining, timeout);
  // Left to the apps (TargetCheck), since Node's own answer to a request without a host has no body.
  const server = createServer({ ...classes, requireHostHeader: false }, answer);
  // Instead of Node's bare 417: an unknown expectation may be ignored (RFC 9110 §10.1.1).
  server.on('checkExpectation', answer);
  // 100 Continue is sent when the body is read: after authentication.
  server.on('checkContinue', answer);
  // Answered like any other method that a path does not have; without a listener, Node.js would just disconnect.
  server.on('connect', (request, socket: Socket) => {
    // Node.js no longer tracks this connection: neither its time limits nor a shutdown would close it.
    setTimeout(() => socket.destroy(), lingerMs).unref();
    socket.on('error', () => {}).resume();
    // It was pipelined: earlier requests are answered if that takes no longer than lingerMs; this one is not.
    if (responseInProgress(socket)) return;
    const response = new classes.ServerResponse(request);
    response.assignSocket(socket);
    response.shouldKeepAlive = false;
    response.once('finish', () => socket.end());
    answer(request, response);
  });
  // A client that closes its side after its requests still gets its responses.
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
  refuseUnreadable(server, baseUrlOf(app));
  setLimits(server, timeout);

  server.listen({ host, port, backlog: 1024 });
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new PortError(describeListenError(error, host, port, prefix), error);
  }
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');

  let drained: Promise<void> | undefined;
  return {
    port: address.port,
    /** Whether it is about to stop: it still answers requests, but is not ready for new ones. */
    isDraining: (): boolean => draining,
    /**
     * Answers the requests that were sent, each with `Connection: close`, and stops. New connections are still accepted
     * for `delay` ms, or a moment, so that load balancers can notice that it is no longer ready. If called again, it
     * waits for the same end.
     */
    drain: (delay = 0): Promise<void> => {
      draining = true;
      return (drained ??= drain(server, delay));
    },
  };
}

/** Sets how long clients may take; `timeout` as for `inactivityTimeout`. */
function setLimits(server: Server, timeout: number): void {
  // Unlimited, since headers beyond the limit would be dropped; their size is limited anyway (431).
  server.maxHeadersCount = 0;
  server.headersTimeout = 20_000;
  // For bodies that nobody reads; those that are read have their own, slightly shorter limit.
  server.requestTimeout = 200_000;
  server.keepAliveTimeout = 65_000;
  server.timeout = timeout;
  server.on('timeout', (socket: Socket) => {
    // The handler of the response in progress may take longer.
    if (!responseInProgress(socket) || socket.writableLength > 0) socket.destroy();
  });
}

/** Closes a server once what was sent to it has been answered. */
async function drain(server: Server, delay: number): Promise<void> {
  await sleep(Math.max(delay, drainPause));
  await untilAcceptQueueIsEmpty(server);
  const closed = once(server, 'close');
  // The http server's own close would also cut idle connections, whose next request may have been sent.
  NetServer.prototype.close.call(server);
  await sleep(drainPause);
  server.closeIdleConnections();
  const late = setTimeout(() => server.closeAllConnections(), drainTimeout);
  await closed;
  clearTimeout(late);
}

/** The beginning of a target in absolute form whose path Express finds: without user information (RFC 9110 §4.2.4). */
const absoluteForm = /^https?:\/\/(\[[\da-f:.]+\]|[\w.~-]+)(:\d*)?([/?]|$)/i;

/** A host and a port, either of which may be empty (RFC 9110 §7.2, RFC 3986 §3.2.2). */
const hostForm = /^(\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(:\d*)?$/i;

/**
 * What is wrong with a request's Host header or transfer coding, to follow "The request has". There must be exactly one
 * Host header, except in HTTP/1.0 (RFC 9112 §3.2), and no transfer coding but chunked (RFC 9112 §6.1): Node.js accepts
 * any list that ends in chunked.
 */
function headerFault({ rawHeaders, httpVersion, headers }: IncomingMessage): string | undefined {
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (httpVersion !== '1.1' || coding.toLowerCase() !== 'chunked')) {
    return 'an unsupported Transfer-Encoding (only chunked is supported, in HTTP/1.1)';
  }
  let host: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (name.length !== 4 || name.toLowerCase() !== 'host') continue;
    if (host !== undefined) return 'more than one Host header';
    host = rawHeaders[at + 1] ?? '';
  }
  if (host === undefined) return httpVersion === '1.1' ? 'no Host header' : undefined;
  return hostForm.test(host) ? undefined : 'a malformed Host header';
}

/**
 * Waits for a turn of the event loop without a new connection, or a hundred turns: a closing server resets the
 * connections that it has not accepted yet, and their requests are lost.
 */
async function untilAcceptQueueIsEmpty(server: Server): Promise<void> {
  let accepted = true;
  const note = (): void => {
    accepted = true;
  };
  server.on('connection', note);
  for (let turns = 0; accepted && turns < 100; turns++) {
    accepted = false;
    await turn();
  }
  server.off('connection', note);
}

/**
 * Classes whose instances have the app's prototypes from the start. Express sets these prototypes on every request and
 * response, which costs more than everything else it does, unless they are set already.
 */
function requestAndResponseOf(app: Express, isDraining: () => boolean, timeout: number) {
  class BridgeRequest extends IncomingMessage {}
  class BridgeResponse extends ServerResponse {
    override writeHead(...head: [number]): this {
      const { complete, socket } = this.req;
      // Checked only now, since draining may have begun after the request.
      const isClosing = isDraining() || refusedConnections.has(socket);
      // A proxy may use the connection again though it has not sent the whole body: the requests of other clients would
      // be read as the rest of it (RFC 9112 §9.3).
      const isBodyUnread = hasUnreadBody(this.req);
      if (isBodyUnread || (isClosing && !hasLaterRequest(this))) this.shouldKeepAlive = false;
      // Node.js calls this after the last response of the connection.
      if (!complete)
        socket.destroySoon = () => startLingeringClose(socket, isBodyUnread ? mayLinger(socket) : undefined);
      return super.writeHead(...head);
    }
  }
  /** A client may read its response only after it has sent all. A stop waits for it only if it is sending. */
  const mayLinger = (socket: Socket): (() => boolean) => {
    const end = performance.now() + timeout;
    let seen = socket.bytesRead;
    return () => {
      const isSending = socket.bytesRead > seen;
      seen = socket.bytesRead;
      return performance.now() < end && (isSending || !isDraining());
    };
  };
  copyPrototype(express.request, BridgeRequest.prototype, app);
  copyPrototype(express.response, BridgeResponse.prototype, app);
  app.request = BridgeRequest.prototype as unknown as typeof app.request;
  app.response = BridgeResponse.prototype as unknown as typeof app.response;
  return { IncomingMessage: BridgeRequest, ServerResponse: BridgeResponse };
}

function copyPrototype(from: object, to: object, app: Express): void {
  Object.defineProperties(to, Object.getOwnPropertyDescriptors(from));
  Object.defineProperty(to, 'app', { value: app, configurable: true, writable: true });
}

function describeListenError(error: unknown, host: string, port: number, prefix: string): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'EADDRINUSE':
      return `port ${port} on ${host} is in use: stop what listens there, or set ${prefix}PORT to another one`;
    case 'EACCES':
      return `port ${port} may not be used by this user: set ${prefix}PORT to 1024 or above`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${prefix}HOST ${host} is not an address of this machine`;
    default:
      return `cannot listen on ${host}:${port}: ${String(error)}`;
  }
}
