import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { Operation } from '../contract/operations.ts';
import type { ProblemCode } from '../contract/problems.ts';
import type { Caller } from '../domain/caller.ts';
import { ipOf } from '../lib/hosts.ts';

/** What the log, the ledger and the metrics get of a call once it is over. */
export interface AccessRecord {
  requestId: string;
  operation: Operation | undefined;
  /** As claimed by the request; proven only once there is a caller. */
  organizationId: string | undefined;
  caller: Caller | undefined;
  /** Whether it came with an API key that nobody has checked. */
  isUnchecked: boolean;
  /** Why the request was refused. */
  code: ProblemCode | undefined;
  /** An error of this service or its stores, for the log. */
  failure: string | undefined;
  /** 0 if the connection was lost before the response was sent. */
  status: number;
  seconds: number;
  userAgent: string | undefined;
  /** The client's address, if the caller is unknown. */
  address: string | undefined;
  /** W3C Trace Context, as the client sent it. */
  traceparent: string | undefined;
}

/** What is known about a request while it is served. */
export interface Call extends AccessRecord {
  /** `performance.now()` when the request came in. */
  startedAt: number;
  /** Headers of every response to it: a name, its value, the next name … */
  headers: readonly string[];
  /** Whether its handler is still running. */
  isWorking: boolean;
  /** Whether its response was sent, or its connection lost. */
  isClosed: boolean;
  connection: Connection;
}

// Properties of their own, since `locals` is a dictionary, which is slower to read.
type WithCall = Response & { call?: Call };
type WithConnection = Socket & { calls?: Connection };

/** The requests of one connection, which a client may pipeline. */
interface Connection {
  unsettled: Set<Response>;
  /** Requests that were parsed but have to wait. */
  waiting: { response: Response; next: NextFunction }[];
  isClosed: boolean;
  settle: (response: Response) => void;
}

/** How many requests of one connection are served at the same time. Others wait, and no more are read. */
const maxUnsettled = 100;

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** Only requests with safe methods may be served at the same time as others (RFC 9112 §9.3.2). */
function mayBegin({ unsettled }: Connection, { method }: Request): boolean {
  const [earlier] = unsettled;
  if (earlier === undefined) return true;
  return unsettled.size < maxUnsettled && safeMethods.has(method) && safeMethods.has(earlier.req.method);
}

/**
 * How many requests may wait, over all connections; a connection with one more is closed. Node.js reads up to 2,500 at
 * once, which take 200 times the memory of their bytes.
 */
const maxWaiting = 10_000;

/** How long waiting requests are started before other work gets its turn, in ms. */
const sliceMs = 5;

const givenRequestId = /^[\w.-]{1,64}$/;

// Strict, since different bytes must remain different organizations.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of a header, of which Node.js makes a character of each byte; undefined if it is not UTF-8. */
export function utf8Header(value: string): string | undefined {
  if (/^[\x20-\x7E]*$/.test(value)) return value;
  try {
    return utf8.decode(Buffer.from(value, 'latin1'));
  } catch {
    return undefined;
  }
}

/**
 * Starts a call for every request, and passes it to `onSettled` exactly once: when its handler has ended and its
 * response was sent or its connection lost. Neither implies the other: a client may disconnect during authentication.
 */
export function trackCalls(onSettled: (record: Readonly<AccessRecord>) => void): RequestHandler {
  function begin(response: WithCall, connection: Connection, next: () => void): void {
    const { 'x-request-id': given, traceparent, 'user-agent': userAgent } = response.req.headers;
    response.call = {
      requestId: typeof given === 'string' && givenRequestId.test(given) ? given : randomUUID(),
      startedAt: performance.now(),
      operation: undefined,
      headers: [],
      organizationId: undefined,
      caller: undefined,
      isUnchecked: false,
      code: undefined,
      failure: undefined,
      status: 0,
      seconds: 0,
      userAgent: userAgent === undefined ? undefined : (utf8Header(userAgent) ?? userAgent),
      address: undefined,
      traceparent: typeof traceparent === 'string' ? traceparent : undefined,
      isWorking: false,
      isClosed: connection.isClosed,
      connection,
    };
    connection.unsettled.add(response);
    response.on('close', onResponseClose);
    if (connection.isClosed) response.destroy();
    next();
    if (connection.isClosed) response.emit('close');
  }

  function settle(response: Response): void {
    const call = callOf(response);
    if (call.isWorking || !call.isClosed || !call.connection.unsettled.delete(response)) return;
    if (response.writableFinished) call.status = response.statusCode;
    call.seconds = (performance.now() - call.startedAt) / 1000;
    if (call.caller === undefined) call.address = ipOf(response.req.ip);
    onSettled(call);
    if (call.connection.waiting.length > 0) scheduleNext(call.connection);
  }

  let waiting = 0;
  /** Connections whose next request may start, in turn. */
  const ready = new Set<Connection>();

  function scheduleNext(connection: Connection): void {
    if (ready.size === 0) setImmediate(takeTurns);
    ready.add(connection);
  }

  function takeTurns(): void {
    const end = performance.now() + sliceMs;
    for (const connection of ready) {
      if (performance.now() >= end) break;
      const [first] = connection.waiting;
      const mayStart = first !== undefined && mayBegin(connection, first.response.req);
      if (mayStart) {
        connection.waiting.shift();
        waiting--;
        begin(first.response, connection, first.next);
        if (connection.waiting.length === 0) resume(first.response.req.socket);
      }
      // The next one of the same connection starts after those of the others.
      ready.delete(connection);
      if (mayStart && connection.waiting.length > 0) ready.add(connection);
    }
    if (ready.size > 0) setImmediate(takeTurns);
  }

  function onResponseClose(this: Response): void {
    callOf(this).isClosed = true;
    settle(this);
  }

  function onConnectionClose(connection: Connection): void {
    connection.isClosed = true;
    // Node.js before 24.20 closes only the first of several pipelined responses; later versions close all of them, but
    // after this event.
    setImmediate(() => {
      for (const response of connection.unsettled) {
        if (callOf(response).isClosed) continue;
        if (response.socket === null) response.destroy().emit('close');
        else onResponseClose.call(response);
      }
    });
  }

  function connectionOf(socket: WithConnection): Connection {
    if (socket.calls !== undefined) return socket.calls;
    const connection: Connection = { unsettled: new Set(), waiting: [], isClosed: socket.destroyed, settle };
    socket.calls = connection;
    socket.on('close', () => onConnectionClose(connection));
    return connection;
  }

  return (request, response, next) => {
    const connection = connectionOf(request.socket);
    if (connection.waiting.length === 0 && mayBegin(connection, request)) {
      begin(response, connection, next);
      return;
    }
    if (waiting >= maxWaiting) {
      request.socket.destroy();
      return;
    }
    waiting++;
    connection.waiting.push({ response, next });
    request.socket.pause();
  };
}

/** Resumes reading once the client has read its responses. */
function resume(socket: Socket): void {
  if (socket.writableNeedDrain) socket.once('drain', () => socket.resume());
  else socket.resume();
}

/** Marks the handler of a request as running: its call is not over before `endWork`, even if its socket closes. */
export function beginWork(response: Response, operation: Operation): void {
  const call = callOf(response);
  call.operation = operation;
  call.isWorking = true;
}

/** Follows `beginWork` once the handler has ended. */
export function endWork(response: Response): void {
  const call = callOf(response);
  call.isWorking = false;
  call.connection.settle(response);
}

/** Whether a call was started; a request that was refused before it reached the app has none. */
export function hasCall(response: Response): boolean {
  return (response as WithCall).call !== undefined;
}

/** Whether the client has pipelined a later request that is being served or has arrived completely. */
export function hasLaterRequest({ req }: ServerResponse): boolean {
  const { calls } = req.socket as WithConnection;
  const waiting = calls?.waiting.findLast(({ response }) => response.req.complete);
  const last = waiting?.response ?? [...(calls?.unsettled ?? [])].at(-1);
  return last !== undefined && last.req !== req;
}

export function callOf(response: Response): Call {
  const { call } = response as WithCall;
  if (call === undefined) throw new Error('this response has no call');
  return call;
}
