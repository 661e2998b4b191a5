import type { Answer } from '../../../test/support/requests/client.ts';
import { inUseOutcome, profileOutcome, type Input } from '../checker/organization.ts';
import { isFiller, type Command } from './turns.ts';

/** A command as the HTTP request that the contract has for it. */
export function requestOf(command: Command): { method: string; path: string; json?: unknown } {
  switch (command.kind) {
    case 'read':
      return { method: 'GET', path: '/api/profile/' };
    case 'put': {
      const { username, avatar } = command;
      const reference = avatar && { datasourceId: 'drill', objectDefinitionId: avatar };
      return {
        method: 'PUT',
        path: '/api/profile/',
        json: { username, avatarObjectDefinitionId: reference },
      };
    }
    case 'ban': {
      // An object literal would take __proto__ for its prototype.
      const json = Object.fromEntries(command.replacements);
      return { method: 'POST', path: '/api/profile/username/deny/', json };
    }
    case 'remove':
      return { method: 'DELETE', path: '/api/profile/username/deny/', json: command.usernames };
    case 'overwrite':
      return { method: 'PUT', path: '/api/profile/username/denylist/', json: command.usernames };
  }
}

/** The parts of a request that take effect at once, and what its answer says about each. */
export interface Part {
  input: Input;
  /** Undefined: unknown. */
  outcome: string | undefined;
}

/** What the requests of a drill may be answered, besides 503. */
const statuses: Readonly<Record<Command['kind'], readonly number[]>> = {
  read: [200, 404],
  put: [200, 409, 422],
  ban: [200, 204],
  remove: [200],
  overwrite: [204, 409],
};

/** The parts of a request by its answer; undefined if none came. */
export function partsOf(command: Command, answer: Answer | undefined): Part[] {
  const isKnown = answer !== undefined && answer.status !== 503;
  if (isKnown && !statuses[command.kind].includes(answer.status)) {
    throw new Error(`${command.kind} was answered ${answer.status}: ${answer.text}`);
  }
  switch (command.kind) {
    case 'read':
      return isKnown ? [{ input: command, outcome: readOutcome(answer) }] : [];
    case 'put':
      return [{ input: command, outcome: isKnown ? putOutcome(answer) : undefined }];
    case 'ban': {
      const banned = command.replacements.map(([name]) => name);
      const { failures = [] } = (answer?.body ?? {}) as { failures?: { username: string; reason: string }[] };
      const reasons = new Map(failures.map(({ username, reason }) => [username, reason]));
      return command.replacements
        .filter(([name]) => !isFiller(name) || reasons.has(name))
        .map(([username, replacement]) => ({
          input: { kind: 'ban', username, replacement, banned },
          outcome: isKnown ? (reasons.get(username) ?? 'banned') : undefined,
        }));
    }
    case 'remove': {
      const { usernamesDeleted = [], usernamesInUse = [] } = (answer?.body ?? {}) as Record<string, string[]>;
      return command.usernames
        .filter((name) => !isFiller(name) || usernamesInUse.includes(name))
        .map((name) => ({
          input: { kind: 'remove', username: name },
          outcome: isKnown
            ? usernamesDeleted.includes(name)
              ? 'deleted'
              : usernamesInUse.includes(name)
                ? 'in use'
                : 'absent'
            : undefined,
        }));
    }
    case 'overwrite': {
      const interesting = command.usernames.filter((name) => !isFiller(name));
      const input: Input = { kind: 'overwrite', usernames: interesting };
      if (!isKnown) return [{ input, outcome: undefined }];
      if (answer.status === 204) return [{ input, outcome: 'overwritten' }];
      const { usernamesInUse = [] } = answer.body as { usernamesInUse?: string[] };
      if (interesting.length === command.usernames.length) {
        return [{ input, outcome: inUseOutcome(usernamesInUse) }];
      }
      // A long list is checked in parts, and refused as a whole.
      const looked = new Set([...interesting, ...usernamesInUse]);
      return [...looked].map((name) => ({
        input: { kind: 'look-up', username: name },
        outcome: usernamesInUse.includes(name) ? 'in use' : 'not in use',
      }));
    }
  }
}

interface ProfileBody {
  username?: string;
  avatar?: { objectDefinitionId: string };
  avatarObjectDefinitionId?: { objectDefinitionId: string };
}

function readOutcome({ status, body }: Answer): string {
  return status === 200 ? outcomeOf(body as ProfileBody) : 'no profile';
}

const refusals: Readonly<Record<string, string>> = { 'username-taken': 'taken', 'username-denied': 'denied' };

function putOutcome({ status, body }: Answer): string {
  if (status === 200) return outcomeOf(body as ProfileBody);
  const { code } = body as { code: string };
  return refusals[code] ?? code;
}

function outcomeOf({ username, avatar, avatarObjectDefinitionId }: ProfileBody): string {
  const { objectDefinitionId } = avatar ?? avatarObjectDefinitionId ?? {};
  return profileOutcome({ username, avatar: objectDefinitionId });
}
