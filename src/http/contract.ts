import cors from 'cors';
import { Router, type RequestHandler } from 'express';
import { problem, ProblemError } from '../contract/problems.ts';
import { bothForms, methodsByPath, routes, type Operation } from '../contract/routes.ts';
import { sendNothing } from './answers.ts';
import { callOf } from './call.ts';

/** Whether a path is one of the contract's. */
export function isContractPath(path: string): boolean {
  return methodsByPath.has(path);
}

/** The contract's rows, each answered by its handlers; then OPTIONS, and 405 for every other method. */
export function contractRouter(
  handlers: Record<Operation, RequestHandler>,
  before: readonly RequestHandler[],
): Router {
  const router = Router({ caseSensitive: true, strict: true });
  for (const { operation, method, path } of routes) {
    const name: RequestHandler = (_request, response, next) => {
      callOf(response).operation = operation;
      next();
    };
    router[method](bothForms(path), name, ...before, handlers[operation]);
  }
  for (const [path, methods] of methodsByPath) {
    router.all(path, (request, response) => {
      if (request.method !== 'OPTIONS') throw notAllowed(methods);
      response.setHeader('Allow', methods.join(', '));
      sendNothing(response);
    });
  }
  return router;
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
