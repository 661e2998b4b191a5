import { setImmediate as turn } from 'node:timers/promises';
import type { Request, RequestHandler, Response } from 'express';
import { problem, ProblemError } from '../contract/problems.ts';
import { validateReplacements, validateUsernames, type Validated } from '../contract/schemas.ts';
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
    const outcome = await ban(context, await readReplacements(body, text));
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
 * The replacements that a body asks for, in the order in which they stand in its text. The object in memory would
 * not do: it moves names such as `123` to the front, and order decides who gets a replacement that two want.
 * A long list is read in several turns of the event loop, between which other requests have theirs.
 */
async function readReplacements(body: unknown, text: string): Promise<Map<string, string>> {
  await turn();
  const names = namesInText(text);
  await turn();
  // As a list they are held against their schema many times faster than as properties.
  if (names === undefined || !validateUsernames(names).ok) {
    return new Map(Object.entries(accept(validateReplacements(body))));
  }
  const replacements = new Map<string, string>();
  for (const [position, name] of names.entries()) {
    if (position % 2 === 1) replacements.set(names[position - 1] ?? name, name);
  }
  await turn();
  return replacements;
}

const stringLiteral = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/** Each property and its value, in turn, as they stand in a JSON text; undefined where that is no flat object of strings. */
function namesInText(text: string): string[] | undefined {
  if (!/^\s*\{[\s:,]*\}\s*$/.test(text.replace(stringLiteral, ''))) return undefined;
  return JSON.parse(`[${(text.match(stringLiteral) ?? []).join(',')}]`) as string[];
}

function busy(): ProblemError {
  return new ProblemError(
    problem('overloaded', 'Another change of this denylist takes its time. Sending this again is safe.'),
  );
}
