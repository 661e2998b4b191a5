import type { ErrorRequestHandler, Express, Response } from 'express';
import { ProblemError } from '../contract/problems.ts';
import { MediaUnavailableError } from '../media/store.ts';
import { isStoreUnavailable } from '../redis/connection/connect.ts';
import { isBacklogFull } from '../redis/changes.ts';
import { bytesOf, jsonParts } from '../lib/long-texts.ts';
import { callOf, type Call } from './call.ts';

/** The result of a handler. */
export type Answer =
  | { kind: 'json'; body: unknown }
  /** A JSON object of lists, which may be long. */
  | { kind: 'lists'; lists: Record<string, readonly unknown[]> }
  | { kind: 'no-content' }
  | ProblemError;

const json = 'application/json; charset=utf-8';

export function methodNotAllowed(methods: readonly string[]): ProblemError {
  return new ProblemError('method-not-allowed', `This path supports only ${methods.join(', ')}.`, {
    allow: methods,
  });
}

/** Sends a handler's answer; synchronously unless it is made of lists. */
export function sendAnswer(response: Response, answer: Answer): Promise<void> | undefined {
  if (answer instanceof ProblemError) sendProblem(response, answer);
  else if (answer.kind === 'lists')
    return bytesOf(jsonParts(answer.lists)).then((bytes) => send(response, 200, json, bytes));
  else if (answer.kind === 'json') send(response, 200, json, JSON.stringify(answer.body));
  else {
    response.writeHead(204, [...callOf(response).headers]);
    response.end();
  }
  return undefined;
}

/** The public address of the service, with which links to it begin; empty if it is unknown. */
export function baseUrlOf(app: Pick<Express, 'locals'>): string {
  return String(app.locals['publicBaseUrl'] ?? '');
}

/** Answers with a problem (RFC 9457). */
export function sendProblem(response: Response, problem: ProblemError): void {
  const call = callOf(response);
  call.code = problem.code;
  for (const [name, value] of Object.entries(problem.headers)) response.setHeader(name, value);
  const body = problem.toBody(call.requestId, baseUrlOf(response.app));
  send(response, problem.status, 'application/problem+json', JSON.stringify(body));
}

/** Answers with the problem for an error, or closes the connection if the response has begun. */
export function sendError(response: Response, error: unknown): void {
  if (response.headersSent || response.destroyed) response.destroy();
  else sendProblem(response, toProblem(error, callOf(response)));
}

export const answerErrors: ErrorRequestHandler = (error: unknown, _request, response, _next) => {
  sendError(response, error);
};

/** An unexpected error is a bug in this service: it is logged, and the client gets only the request's id. */
function toProblem(error: unknown, call: Call): ProblemError {
  if (error instanceof ProblemError) {
    if (error.cause !== undefined) call.failure = describeCause(error.cause);
    return error;
  }
  // Express decodes the parameters of a path.
  if (error instanceof URIError) return new ProblemError('not-found', 'There is nothing at this path.');
  if (error instanceof MediaUnavailableError) {
    call.failure = error.message;
    return new ProblemError(
      'store-unavailable',
      'Pictures cannot be stored or read at present. Nothing was changed; sending the same request again is safe.',
    );
  }
  if (isStoreUnavailable(error)) {
    call.failure = String(error);
    return new ProblemError(
      'store-unavailable',
      'The store could not be reached or did not answer in time. If the request was to change something, it is ' +
        'unknown how much of it took effect; sending the same request again is safe.',
    );
  }
  if (isBacklogFull(error)) {
    call.failure = String(error);
    return new ProblemError(
      'replay-unavailable',
      'Too many changes of this organization are waiting to be replayed to the legacy service. This one was not made; ' +
        'if it is a long list of usernames, part of it may have been. Sending the same request again is safe.',
    );
  }
  call.failure = error instanceof Error ? error.stack : String(error);
  return new ProblemError(
    'internal-error',
    'The request could not be served because of a bug in the service.',
  );
}

/** An error in one short line. That of several addresses tried has a code only; OpenSSL's messages have several lines. */
function describeCause(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  return [code, message].filter(Boolean).join(': ').replaceAll(/\s+/g, ' ').trim().slice(0, 300);
}

function send(response: Response, status: number, type: string, text: string | Buffer): void {
  const { headers } = callOf(response);
  const length = Buffer.byteLength(text);
  // In one call: setting headers one by one costs twice as much.
  response.writeHead(status, [...headers, 'Content-Type', type, 'Content-Length', length]);
  // ASCII has the same bytes in Latin-1, which is faster to write.
  response.end(text, length === text.length ? 'latin1' : 'utf8');
}
