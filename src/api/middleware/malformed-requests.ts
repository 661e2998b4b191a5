import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Response } from 'express';
import { problem, renderProblem, type Problem } from '../../contract/problems.ts';
import { sendProblem } from '../respond.ts';
import { hasCall } from '../call.ts';

/** How long a client has to read its refusal, in ms, before it is cut. */
const lingering = 1000;

/**
 * Lets a server refuse what is no HTTP request, or takes too long to become one, with a problem (RFC 9457) in place
 * of Node's bare status line. What was asked before on the same connection, and has been read to its end, is
 * still answered; nothing after it is read.
 */
export function refuseUnreadable(server: Server, baseUrl: string): void {
  const refused = new WeakSet<Duplex>();
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    // Whatever else it sends is an error again.
    if (refused.has(socket)) return;
    refused.add(socket);
    // A reset, from now on, is no news.
    socket.on('error', () => {});
    refuse(problemOf(error), socket, baseUrl);
  });
}

/** Refuses a request of HTTP/1.1 without exactly one Host header (RFC 9112 §3.2); returns whether it did. */
export function refusedForHost(request: IncomingMessage, response: ServerResponse, baseUrl: string): boolean {
  const hosts = countHosts(request.rawHeaders);
  if (hosts === 1 || (hosts === 0 && request.httpVersion !== '1.1')) return false;
  const detail = `The request has ${hosts === 0 ? 'no' : 'more than one'} Host header.`;
  const { head, body } = render(problem('malformed-request', detail), baseUrl);
  response.writeHead(400, { ...head, Connection: 'close' }).end(body);
  return true;
}

/** The parsed headers hold the first one only. */
function countHosts(rawHeaders: readonly string[]): number {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++;
  }
  return hosts;
}

function refuse(carried: Problem, socket: Duplex, baseUrl: string): void {
  // Node's own name for the response under way; it has no public one.
  const { _httpMessage: response } = socket as { _httpMessage?: Response | null };
  const end = (): void => {
    setTimeout(() => socket.destroy(), lingering).unref();
    socket.end();
  };
  if (response?.req.complete) {
    response.once('finish', end);
    response.shouldKeepAlive = false;
  } else if (response?.headersSent) {
    socket.destroy();
  } else if (response && hasCall(response)) {
    response.once('finish', end);
    response.shouldKeepAlive = false;
    sendProblem(response, carried);
  } else {
    const { head, body } = render(carried, baseUrl);
    const lines = Object.entries({ ...head, Date: new Date().toUTCString(), Connection: 'close' });
    socket.write(
      `HTTP/1.1 ${carried.status} ${STATUS_CODES[carried.status]}\r\n` +
        `${lines.map((line) => line.join(': ')).join('\r\n')}\r\n\r\n${body}`,
    );
    end();
  }
}

function problemOf({ code }: NodeJS.ErrnoException): Problem {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return problem('headers-too-large', 'The headers have more than 16 KiB.');
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return problem('payload-too-large', 'The extensions of a chunk have more than 16 KiB.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return problem('request-timeout', 'The request did not arrive in time.');
    default:
      return problem('malformed-request', 'What was sent is no request of HTTP/1.1.');
  }
}

/** The headers and the text of a problem that is nobody's call. */
function render(carried: Problem, baseUrl: string): { head: Record<string, string>; body: string } {
  const requestId = randomUUID();
  const body = JSON.stringify(renderProblem(carried, requestId, baseUrl));
  const head = {
    ...carried.headers,
    'X-Request-Id': requestId,
    'Content-Type': 'application/problem+json',
    'Content-Length': String(Buffer.byteLength(body)),
  };
  return { head, body };
}
