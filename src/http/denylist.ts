import type { Request, RequestHandler, Response } from 'express';
import { problem, ProblemError } from '../contract/problems.ts';
import { validateReplacements, validateUsernames, type Validated } from '../contract/schemas.ts';
import type { Replacements } from '../contract/types.gen.ts';
import {
  banUsernames as ban,
  overwriteDenylist as overwrite,
  removeDenied as remove,
  type DenylistContext,
} from '../redis/denylist.ts';
import { sendJson, sendNothing } from './answers.ts';
import { authenticateRequest, requireAdmin, type AuthenticationOptions } from './credentials.ts';
import type { JsonReader } from './json-body.ts';

export interface DenylistOptions extends AuthenticationOptions {
  readJson: JsonReader;
}

/** Contract 4.3. */
export function banUsernames(options: DenylistOptions): RequestHandler {
  return async (request, response) => {
    const { context, body, text } = await readAdminRequest(request, response, options);
    const outcome = await ban(context, inOrder(accept(validateReplacements(body)), text));
    if (outcome.kind === 'busy') throw busy();
    if (outcome.failures.length === 0) sendNothing(response);
    else {
      const usernamesNotAdded = outcome.failures.map(({ username }) => username);
      sendJson(response, 200, { usernamesNotAdded, failures: outcome.failures });
    }
  };
}

/** Contract 4.4. */
export function removeDeniedUsernames(options: DenylistOptions): RequestHandler {
  return async (request, response) => {
    const { context, body } = await readAdminRequest(request, response, options);
    const outcome = await remove(context, accept(validateUsernames(body)));
    if (outcome.kind === 'busy') throw busy();
    sendJson(response, 200, { usernamesDeleted: outcome.deleted, usernamesInUse: outcome.inUse });
  };
}

/** Contract 4.5. */
export function overwriteDenylist(options: DenylistOptions): RequestHandler {
  return async (request, response) => {
    const { context, body } = await readAdminRequest(request, response, options);
    const outcome = await overwrite(context, accept(validateUsernames(body)));
    switch (outcome.kind) {
      case 'overwritten':
        sendNothing(response);
        break;
      case 'in-use':
        throw new ProblemError(
          problem('usernames-in-use', 'Some of these usernames are in use; the denylist is as it was.', {
            usernamesInUse: outcome.usernames,
          }),
        );
      case 'busy':
        throw busy();
    }
  };
}

async function readAdminRequest(
  request: Request,
  response: Response,
  options: DenylistOptions,
): Promise<{ context: DenylistContext; body: unknown; text: string }> {
  const { base, caller, standing } = await authenticateRequest(request, response, options);
  requireAdmin(caller);
  const { text, value } = await options.readJson(request, response);
  return { context: { store: options.store, base, keyId: caller.keyId, standing }, body: value, text };
}

function accept<Value>(checked: Validated<Value>): Value {
  if (checked.ok) return checked.value;
  throw new ProblemError(
    problem('invalid-body', 'The body does not follow the contract.', { errors: checked.errors }),
  );
}

/**
 * The properties of a flat object of strings in the order in which they stand in its text. The object in memory
 * would not do: it moves names such as `123` to the front, and order decides who gets a replacement that two
 * want. In such a text every string literal is a name or a value, in turn, unless a name is given twice: then
 * what it had first may be of any shape, and only the object can be trusted.
 */
function inOrder(replacements: Replacements, text: string): Map<string, string> {
  const literals = text.match(/"[^"\\]*(?:\\.[^"\\]*)*"/g) ?? [];
  const entries = Object.entries(replacements);
  if (literals.length !== 2 * entries.length) return new Map(entries);
  const ordered = new Map<string, string>();
  for (let i = 0; i + 1 < literals.length; i += 2) {
    ordered.set(parseString(literals[i]), parseString(literals[i + 1]));
  }
  return ordered;
}

function parseString(literal: string | undefined): string {
  return JSON.parse(literal ?? '""') as string;
}

function busy(): ProblemError {
  return new ProblemError(
    problem('overloaded', 'Another change of this denylist takes its time. Sending this again is safe.'),
  );
}
