import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Response } from 'express';
import { ProblemError } from '../../contract/problems.ts';
import { sendProblem } from '../respond.ts';
import { hasCall } from '../call.ts';

/** How long a connection that is closing stays open for its client to read the response, in ms. */
export const lingerMs = 1000;

/** The response in progress on a connection, for which Node.js has no public name. */
export function responseInProgress(socket: Duplex): Response | null | undefined {
  const { _httpMessage: response } = socket as { _httpMessage?: Response | null };
  return response;
}

/**
 * Ends a connection after its response, and reads and discards what the client still sends, for `lingerMs`, and then
 * for as long as `mayLinger` says, which is asked every `lingerMs`. Closing with unread data would reset the connection,
 * and the client, or a proxy in front of it, could lose the response (RFC 9112 §9.6).
 */
export function startLingeringClose(socket: Duplex, mayLinger = (): boolean => false): void {
  const lingering = setInterval(() => {
    if (mayLinger()) return;
    clearInterval(lingering);
    socket.destroy();
  }, lingerMs).unref();
  // Otherwise the closed socket would stay in memory.
  socket.once('close', () => clearInterval(lingering)).end();
}

/** Connections on which a request was refused as unreadable; nothing more is read from them. */
export const refusedConnections = new WeakSet<Duplex>();

/**
 * Makes a server refuse what is not an HTTP request, or does not arrive in time, with a problem (RFC 9457) instead of
 * Node's bare status line. Complete requests that arrived earlier on the same connection are answered instead; nothing
 * after them is read.
 */
export function refuseUnreadable(server: Server, baseUrl: string): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // Everything that follows on this connection is an error as well.
    if (refusedConnections.has(socket) && error.code !== 'ECONNRESET') return;
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    refusedConnections.add(socket);
    // The client may reset the connection from now on.
    socket.on('error', () => {});
    refuse(problemOf(error), socket, baseUrl);
  });
}

/** Refuses a request with a malformed target or header (TargetCheck), and closes its connection. */
export function refuseTarget(response: Response, fault: string): void {
  response.shouldKeepAlive = false;
  sendProblem(response, new ProblemError('malformed-request', `The request has ${fault}.`));
}

/** Ends a connection after the responses to all requests that have arrived completely. */
function endAfter(response: Response, socket: Duplex): void {
  response.once('finish', () => {
    const next = responseInProgress(socket);
    if (next?.req.complete) endAfter(next, socket);
    else startLingeringClose(socket);
  });
}

/** Answers with the problem, if there is no response that this would cut off, and closes the connection. */
function refuse(problem: ProblemError, socket: Duplex, baseUrl: string): void {
  const response = responseInProgress(socket);
  if (response?.req.complete) {
    endAfter(response, socket);
  } else if (response?.headersSent) {
    socket.destroy();
  } else if (response && hasCall(response)) {
    endAfter(response, socket);
    sendProblem(response, problem);
  } else {
    const requestId = randomUUID();
    const body = JSON.stringify(problem.toBody(requestId, baseUrl));
    const lines = Object.entries({
      ...problem.headers,
      'X-Request-Id': requestId,
      'Content-Type': 'application/problem+json',
      'Content-Length': String(Buffer.byteLength(body)),
      Date: new Date().toUTCString(),
      Connection: 'close',
    });
    socket.write(
      `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n` +
        `${lines.map((line) => line.join(': ')).join('\r\n')}\r\n\r\n${body}`,
    );
    startLingeringClose(socket);
  }
}

function problemOf({ code }: NodeJS.ErrnoException): ProblemError {
  switch (code) {
    case 'HPE_INVALID_METHOD':
      return new ProblemError(
        'malformed-request',
        'The bytes received do not begin with a known HTTP method.',
      );
    case 'HPE_HEADER_OVERFLOW':
      return new ProblemError('headers-too-large', 'The headers exceed 16 KiB.');
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ProblemError('payload-too-large', 'The extensions of a chunk exceed 16 KiB.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ProblemError('request-timeout', 'The request did not arrive in time.');
    default:
      return new ProblemError('malformed-request', 'The bytes received are not a valid HTTP request.');
  }
}
