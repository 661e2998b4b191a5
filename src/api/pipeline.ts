import cors from 'cors';
import { Router, type Request, type RequestHandler, type Response } from 'express';
import { problem, ProblemError } from '../contract/problems.ts';
import { operationsByPath, type Operation } from '../contract/routes.ts';
import { sendNothing } from './respond.ts';
import { callOf } from './request-context.ts';

/** Whether a path is one of the contract's. */
export function isContractPath(path: string): boolean {
  return operationsByPath.has(path);
}

/** Lets a request pass, at once or in time; or throws what is to be answered instead. */
export type Guard = (request: Request, response: Response) => Promise<void> | undefined;

/**
 * The contract's rows, each answered by its handler once all guards have let it pass; then OPTIONS, and 405 for
 * every other method. To be called with the contract's paths only, each of which is one look-up here where a
 * Router would try pattern after pattern.
 */
export function contractHandler(
  handlers: Record<Operation, RequestHandler>,
  guards: readonly Guard[],
): RequestHandler {
  return async (request, response, next) => {
    const operations = operationsByPath.get(request.path);
    const operation = operations?.get(request.method);
    if (operation === undefined) {
      const methods = [...(operations?.keys() ?? []), 'OPTIONS'];
      if (request.method !== 'OPTIONS') throw notAllowed(methods);
      response.setHeader('Allow', methods.join(', '));
      sendNothing(response);
      return;
    }
    callOf(response).operation = operation;
    for (const guard of guards) {
      const passing = guard(request, response);
      if (passing !== undefined) await passing;
    }
    await handlers[operation](request, response, next);
  };
}

/** What is there to be read only: each path answers GET and HEAD, in both forms, and 405 to every other method. */
export function readOnlyRouter(pages: Record<string, RequestHandler<{ file: string }>>): Router {
  const router = Router({ caseSensitive: true });
  for (const [path, page] of Object.entries(pages)) {
    router.get(path, page as RequestHandler);
    router.all(path, (request, _response, next) => {
      if (request.method !== 'GET' && request.method !== 'HEAD') throw notAllowed(['GET', 'HEAD']);
      next();
    });
  }
  return router;
}

function notAllowed(methods: readonly string[]): ProblemError {
  return new ProblemError(
    problem('method-not-allowed', `This path answers ${methods.join(', ')} only.`, { allow: methods }),
  );
}

/**
 * Lets pages of the given origins call the contract, and read the headers that matter to them. Answers OPTIONS
 * itself only for a preflight of such a page; `Allow` is the router's to tell.
 */
export function allowOrigins(
  origins: readonly string[],
  organizationHeader: string,
  exposed: readonly string[],
): RequestHandler {
  return cors({
    origin: [...origins],
    methods: ['GET', 'HEAD', 'PUT', 'POST', 'DELETE'],
    allowedHeaders: ['content-type', 'x-api-key', organizationHeader, 'x-request-id'],
    exposedHeaders: [...exposed],
    maxAge: 600,
    preflightContinue: true,
  });
}
