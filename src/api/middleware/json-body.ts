import type { Request, Response } from 'express';
import { ProblemError } from '../../contract/problems.ts';
import { maxErrors } from '../../contract/schemas.ts';
import type { BodyError } from '../../contract/types.gen.ts';
import { bodyProblem, hasBody, receiveBody, utf8Charset } from './receive-body.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Receives a JSON body of at most `limit` bytes, both as sent and decompressed, without parsing it. Throws an
 * `unsupported-media-type` problem, which names what the operation accepts, `payload-too-large` or `invalid-json`.
 */
export async function receiveJson(
  request: Request,
  response: Response,
  limit: number,
  accepted = 'application/json',
): Promise<Buffer> {
  if (!hasBody(request)) {
    throw new ProblemError('invalid-json', 'The request needs a JSON body and has none.');
  }
  const charset = /;\s*charset="?([^";\s]+)/i.exec(request.headers['content-type'] ?? '')?.[1];
  if (!request.is('application/json') || (charset !== undefined && !utf8Charset.test(charset))) {
    throw new ProblemError('unsupported-media-type', `The body must be sent as ${accepted}, in UTF-8.`);
  }
  return await receiveBody(request, response, { limit, unreadable: 'invalid-json' });
}

/** Parses JSON in UTF-8 (RFC 8259 §8.1); throws `invalid-json` if it is not. */
export function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(utf8.decode(body)) as unknown;
  } catch (error) {
    const form = error instanceof SyntaxError ? 'JSON' : 'UTF-8';
    throw bodyProblem('invalid-json', `is not well-formed ${form}`);
  }
}

/** `invalid-body`, with the first violations of the schema. */
export function invalidBody(errors: BodyError[]): ProblemError {
  const first = errors.slice(0, maxErrors);
  return new ProblemError('invalid-body', 'The body does not match the schema.', { errors: first });
}
