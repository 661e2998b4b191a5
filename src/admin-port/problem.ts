import type { ErrorRequestHandler, Response } from 'express';
import type { Log } from '../log.ts';
import { ReportTooLargeError } from '../deprecation/ledger/ledger-reader.ts';
import { wrongTypeOf } from '../redis/connection/client.ts';
import { isStoreUnavailable } from '../redis/connection/connect.ts';

/** A problem for the operator: the members of RFC 9457, and a remedy. */
export interface AdminProblem {
  status: number;
  title: string;
  detail: string;
  remedy: string;
  headers?: Record<string, string>;
}

/** Answers with the problem as `application/problem+json` (RFC 9457). */
export function sendProblem(response: Response, { headers = {}, ...problem }: AdminProblem): void {
  response.set(headers).status(problem.status).type('application/problem+json');
  response.send(JSON.stringify({ type: 'about:blank', ...problem }));
}

/** The problem for an error while a request to `path` was served; an unexpected error is logged. */
export function explainError(error: unknown, path: string, log: Log): AdminProblem {
  if (isStoreUnavailable(error)) {
    return {
      status: 503,
      title: 'The ledger cannot be read',
      detail: 'Redis does not answer, or answers too slowly. Calls are still counted, in memory.',
      remedy: 'Check Redis (REDIS_URL). The bridge reconnects by itself and needs no restart.',
      headers: { 'Retry-After': '5' },
    };
  }
  if (error instanceof ReportTooLargeError) {
    return {
      status: 400,
      title: 'The report is too large',
      detail: error.message,
      remedy: 'Narrow the query, or read it in parts.',
    };
  }
  const status = (error as { status?: unknown } | undefined)?.status;
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return {
      status,
      title: 'The request cannot be read',
      detail: 'Its path or body is malformed, or too large.',
      remedy: 'Check the request; the README describes the admin port.',
    };
  }
  const text = error instanceof Error ? error.stack : String(error);
  const key = wrongTypeOf(error)?.key;
  const message =
    key === undefined
      ? 'a request to the admin port failed'
      : `a request to the admin port failed: remove the key ${key}, which has the wrong type`;
  log.error(message, { path, error: text });
  return {
    status: 500,
    title: 'Internal error',
    detail:
      'The request failed because of a bug in Profile Bridge, or because of data that it did not write.',
    remedy: 'The log has the details. If they name no key to remove, please report them.',
  };
}

/** The error handler of the admin port. */
export function handleErrors(log: Log): ErrorRequestHandler {
  return (error: unknown, { path }, response, _next) => {
    sendProblem(response, explainError(error, path, log));
  };
}
