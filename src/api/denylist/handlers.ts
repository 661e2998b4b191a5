import { ProblemError } from '../../contract/problems.ts';
import {
  banUsernames as ban,
  overwriteDenylist as overwrite,
  removeDenied as remove,
  type DenylistContext,
} from '../../redis/denylist.ts';
import type { AuthenticatedCaller } from '../middleware/authentication.ts';
import type { Answer } from '../respond.ts';
import type { RedisClient } from '../../redis/connection/client.ts';

/** The handlers of the denylist operations. */
export function createDenylistHandlers(store: RedisClient) {
  const contextOf = ({ base, found }: AuthenticatedCaller): DenylistContext => ({
    store,
    base,
    keyId: found.caller.keyId,
    snapshot: found.snapshot,
  });
  return {
    /** Contract 4.3. */
    banUsernames: async (
      authenticated: AuthenticatedCaller,
      replacements: ReadonlyMap<string, string>,
    ): Promise<Answer> => {
      const outcome = await ban(contextOf(authenticated), replacements);
      if (outcome.kind === 'busy') return busy(partlyMade);
      // "The request may succeed in part; the response then lists the usernames that could not be added." (4.3.5)
      const { failures } = outcome;
      if (failures.length === 0) return { kind: 'no-content' };
      const usernamesNotAdded = failures.map(({ username }) => username);
      return { kind: 'lists', lists: { usernamesNotAdded, failures } };
    },
    /** Contract 4.4. */
    removeDeniedUsernames: async (
      authenticated: AuthenticatedCaller,
      usernames: readonly string[],
    ): Promise<Answer> => {
      const outcome = await remove(contextOf(authenticated), usernames);
      if (outcome.kind === 'busy') return busy(partlyMade);
      return { kind: 'lists', lists: { usernamesDeleted: outcome.deleted, usernamesInUse: outcome.inUse } };
    },
    /** Contract 4.5. */
    overwriteDenylist: async (
      authenticated: AuthenticatedCaller,
      usernames: readonly string[],
    ): Promise<Answer> => {
      const outcome = await overwrite(contextOf(authenticated), usernames);
      switch (outcome.kind) {
        case 'overwritten':
          return { kind: 'no-content' };
        // "If any of its names is in use, nothing changes, and the response lists those names." (4.5.2)
        case 'in-use':
          return new ProblemError(
            'usernames-in-use',
            'Some of these usernames are in use; the denylist was not changed.',
            { usernamesInUse: outcome.usernames },
          );
        case 'busy':
          return busy('This one changed nothing');
      }
    },
  };
}

const partlyMade = 'A part of this one may have taken effect';

function busy(effect: string): ProblemError {
  const detail = `Another change of this denylist is in progress. ${effect}; sending the same request again is safe.`;
  return new ProblemError('overloaded', detail);
}
