import type { Request, RequestHandler, Response } from 'express';
import { problem, ProblemError } from '../../contract/problems.ts';
import {
  banUsernames as ban,
  overwriteDenylist as overwrite,
  removeDenied as remove,
  type DenylistContext,
} from '../../redis/denylist.ts';
import { sendLists, sendNothing } from '../respond.ts';
import { authenticateRequest, requireAdmin, type AuthenticationOptions } from '../authentication.ts';
import type { ListReader } from './list-body.ts';

export interface DenylistOptions extends AuthenticationOptions {
  read: ListReader;
}

/** Contract 4.3. */
export function banUsernames(options: DenylistOptions): RequestHandler {
  return async (request, response) => {
    const context = await openAsAdmin(request, response, options);
    const outcome = await ban(context, await options.read.replacements(request, response));
    if (outcome.kind === 'busy') throw busy();
    // "The request may succeed in part; the response then lists the usernames that could not be added." (contract 4.3.5)
    if (outcome.failures.length === 0) sendNothing(response);
    else {
      const usernamesNotAdded = outcome.failures.map(({ username }) => username);
      await sendLists(response, { usernamesNotAdded, failures: outcome.failures });
    }
  };
}

/** Contract 4.4. */
export function removeDeniedUsernames(options: DenylistOptions): RequestHandler {
  return async (request, response) => {
    const context = await openAsAdmin(request, response, options);
    const outcome = await remove(context, await options.read.usernames(request, response));
    if (outcome.kind === 'busy') throw busy();
    await sendLists(response, { usernamesDeleted: outcome.deleted, usernamesInUse: outcome.inUse });
  };
}

/** Contract 4.5. */
export function overwriteDenylist(options: DenylistOptions): RequestHandler {
  return async (request, response) => {
    const context = await openAsAdmin(request, response, options);
    const outcome = await overwrite(context, await options.read.usernames(request, response));
    switch (outcome.kind) {
      case 'overwritten':
        sendNothing(response);
        break;
      // "If any of its names is in use, nothing changes, and the response lists those names." (contract 4.5.2)
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

async function openAsAdmin(
  request: Request,
  response: Response,
  options: DenylistOptions,
): Promise<DenylistContext> {
  const { base, caller, snapshot } = await authenticateRequest(request, response, options);
  requireAdmin(caller);
  return { store: options.store, base, keyId: caller.keyId, snapshot };
}

function busy(): ProblemError {
  return new ProblemError(
    problem('overloaded', 'Another change of this denylist takes its time. Sending this again is safe.'),
  );
}
