import type { ErrorRequestHandler, RequestHandler, Response } from 'express';
import { problem, ProblemError, renderProblem, type Problem } from '../contract/problems.ts';
import { MediaUnavailableError } from '../media/errors.ts';
import { isStoreUnavailable } from '../redis/connection/connect.ts';
import { yieldingChunks } from '../lib/time-slices.ts';
import { callOf, type Call } from './request-context.ts';

/** Answers with a JSON body. */
export function sendJson(response: Response, status: number, value: unknown): void {
  send(response, status, 'application/json; charset=utf-8', JSON.stringify(value));
}

/** Answers 200 with a JSON object of lists, however long these are: its text is made in turns. */
export async function sendLists(
  response: Response,
  lists: Record<string, readonly unknown[]>,
): Promise<void> {
  const parts: Buffer[] = [];
  for (const [name, list] of Object.entries(lists)) {
    parts.push(Buffer.from(`${parts.length === 0 ? '{' : '],'}${JSON.stringify(name)}:[`));
    let comma = '';
    for await (const chunk of yieldingChunks(list)) {
      parts.push(Buffer.from(comma + JSON.stringify(chunk).slice(1, -1)));
      comma = ',';
    }
  }
  parts.push(Buffer.from(']}'));
  send(response, 200, 'application/json; charset=utf-8', Buffer.concat(parts));
}

/** Answers with a problem (RFC 9457). */
export function sendProblem(response: Response, { headers, ...carried }: Problem): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  const body = renderProblem({ ...carried, headers }, callOf(response).requestId);
  send(response, carried.status, 'application/problem+json', JSON.stringify(body));
}

/** Answers every request with one text, which never changes while the process lives. */
export function page(type: string, text: string, contentSecurityPolicy?: string): RequestHandler {
  return (_request, response) => {
    response.setHeader('Cache-Control', 'no-cache');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    if (contentSecurityPolicy !== undefined) {
      response.setHeader('Content-Security-Policy', contentSecurityPolicy);
    }
    send(response, 200, type, text);
  };
}

/** Answers 204. */
export function sendNothing(response: Response): void {
  response.writeHead(204, [...callOf(response).headers]);
  response.end();
}

/**
 * Turns whatever a handler threw into a problem. What it does not know is a mistake of ours: the log learns of it,
 * with the request's id, and the caller learns nothing but that id.
 */
export const answerErrors: ErrorRequestHandler = (error: unknown, _request, response, _next) => {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  sendProblem(response, toProblem(error, callOf(response)));
};

function toProblem(error: unknown, call: Call): Problem {
  if (error instanceof ProblemError) return error.problem;
  // Express decodes the parameters of a path; what does not decode names nothing.
  if (error instanceof URIError) return problem('not-found', 'Nothing answers at this path.');
  if (isStoreUnavailable(error) || error instanceof MediaUnavailableError) {
    call.failure = String(error);
    return problem('store-unavailable', 'The store cannot be reached now. Nothing is known to have changed.');
  }
  call.failure = error instanceof Error ? error.stack : String(error);
  return problem('internal-error', 'The request could not be served, by a mistake that is not yours.');
}

function send(response: Response, status: number, type: string, text: string | Buffer): void {
  const { headers } = callOf(response);
  const length = Buffer.byteLength(text);
  // All at once: headers that are set one by one cost twice as much.
  response.writeHead(status, [...headers, 'Content-Type', type, 'Content-Length', length]);
  // Of ASCII, Latin-1 is the same bytes, written with less work.
  response.end(text, length === text.length ? 'latin1' : 'utf8');
}
