import type { Request, Response } from 'express';
import { ProblemError } from '../../contract/problems.ts';
import type { BodyError } from '../../contract/types.gen.ts';
import { bodyTooLarge, createBodyReceiver, hasBody, type BodyReceiver } from './receive-body.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads JSON in UTF-8 (RFC 8259 §8.1) of at most `limit` bytes, both as sent and decompressed. Throws an
 * `unsupported-media-type`, `payload-too-large` or `invalid-json` problem.
 */
export function createJsonReader(limit: number) {
  const readBytes = createBodyReader(limit);
  return async (request: Request, response: Response): Promise<unknown> =>
    parseJson(await readBytes(request, response));
}

/** Receives a JSON body without parsing it; otherwise like createJsonReader. */
export function createBodyReader(limit: number): BodyReceiver {
  const receive = createBodyReceiver(limit, { tooLarge: () => bodyTooLarge(limit), unreadable: invalidJson });
  return async (request, response) => {
    requireJson(request);
    return await receive(request, response);
  };
}

/** Parses a body; throws `invalid-json` if it is not JSON. */
function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(utf8.decode(body)) as unknown;
  } catch (error) {
    throw invalidJson(error instanceof SyntaxError ? 'is not well-formed JSON' : 'is not well-formed UTF-8');
  }
}

/** `invalid-json`; `reason` continues the words "The body". */
export function invalidJson(reason: string): ProblemError {
  return new ProblemError('invalid-json', `The body ${reason}.`);
}

/** `invalid-body`, with the violations of the schema. */
export function invalidBody(errors: BodyError[]): ProblemError {
  return new ProblemError('invalid-body', 'The body does not follow the contract.', { errors });
}

function requireJson(request: Request): void {
  if (!hasBody(request)) {
    throw new ProblemError('invalid-json', 'The request needs a JSON body and has none.');
  }
  const charset = /;\s*charset="?([^";\s]+)/i.exec(request.headers['content-type'] ?? '')?.[1];
  if (!request.is('application/json') || (charset !== undefined && !/^(utf-?8|us-ascii)$/i.test(charset))) {
    throw new ProblemError('unsupported-media-type', 'The body must be sent as application/json, in UTF-8.');
  }
}
