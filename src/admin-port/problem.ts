import type { ErrorRequestHandler, Response } from 'express';
import type { Log } from '../log.ts';
import { isStoreUnavailable } from '../redis/connection/connect.ts';

/** What went wrong, for whoever operates the bridge: RFC 9457, and what to do about it. */
export interface OperationsProblem {
  status: number;
  title: string;
  detail: string;
  remedy: string;
  headers?: Readonly<Record<string, string>>;
}

/** Answers with the problem as `application/problem+json`: unlike the public one it names what to do, and no code. */
export function tellOperator(response: Response, { headers = {}, ...problem }: OperationsProblem): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.status(problem.status).type('application/problem+json');
  response.send(JSON.stringify({ type: 'about:blank', ...problem }));
}

/** What an error means for the operator; undefined where it is a mistake of ours. */
export function explainError(error: unknown): OperationsProblem | undefined {
  if (isStoreUnavailable(error)) {
    return {
      status: 503,
      title: 'The ledger cannot be read',
      detail: 'Redis is away, or too slow to answer. The bridge goes on counting in memory meanwhile.',
      remedy: 'Look after Redis (REDIS_URL); nothing here needs a restart.',
      headers: { 'Retry-After': '5' },
    };
  }
  const status = (error as { status?: unknown } | undefined)?.status;
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return {
      status,
      title: 'The request cannot be read',
      detail: 'Its path or its body is malformed or too large.',
      remedy: 'Send it as the page or the documentation does.',
    };
  }
  return undefined;
}

/** The admin port's error handler: turns whatever a handler threw into a problem, and logs what nobody expected. */
export function tellOperatorOfErrors(log: Log): ErrorRequestHandler {
  return (error: unknown, request, response, _next) => {
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const known = explainError(error);
    if (known === undefined) {
      const text = error instanceof Error ? error.stack : String(error);
      log.error('a request to the admin port failed', { path: request.path, error: text });
    }
    tellOperator(
      response,
      known ?? {
        status: 500,
        title: 'Something broke',
        detail: 'The request could not be served, by a mistake that is not yours.',
        remedy: 'The log tells what happened; please report it.',
      },
    );
  };
}
