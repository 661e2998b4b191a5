import { normalizedName, type UsernameComparison } from '../../../src/domain/usernames.ts';
import type { Model, Operation, Step } from './linearizability.ts';

/**
 * What a client asks of an organization, in the largest parts that the contract lets take effect at once: a list of
 * bans is one for each name (contract 4.3: "totally or partially"), an overwrite is one (4.5).
 */
export type Input =
  | { kind: 'read'; user: string }
  /** Absent: left as it is. `avatar: null`: unset. */
  | { kind: 'put'; user: string; username?: string | undefined; avatar?: string | null | undefined }
  /** `banned`: all names that the same request bans. */
  | { kind: 'ban'; username: string; replacement: string; banned: readonly string[] }
  | { kind: 'remove'; username: string }
  | { kind: 'overwrite'; usernames: readonly string[] }
  /** Whether somebody has the name; changes nothing. */
  | { kind: 'look-up'; username: string }
  /** Whether the name is denied; changes nothing. */
  | { kind: 'look-up-denied'; username: string }
  /** The organization compares names in another way from now on. */
  | { kind: 'compare'; comparison: UsernameComparison };

interface Profile {
  username?: string | undefined;
  avatar?: string | undefined;
}

/** An organization. Immutable: every step creates a new one. */
export interface Organization {
  comparison: UsernameComparison;
  profiles: ReadonlyMap<string, Profile>;
  /** Normalized name → name as it was given. */
  denied: ReadonlyMap<string, string>;
}

/** The outcome of a read, or of a put that was not refused. */
export function profileOutcome({ username, avatar }: Profile): string {
  return `profile ${JSON.stringify([username ?? null, avatar ?? null])}`;
}

/** The outcome of an overwrite that was refused, whatever the order of the names. */
export function inUseOutcome(usernames: readonly string[]): string {
  return `in use ${JSON.stringify(usernames.toSorted())}`;
}

/** The contract's data (sections 2 and 4) as a sequential specification. */
export function organizationModel(comparison: UsernameComparison): Model<Organization, Input> {
  return { initial: { comparison, profiles: new Map(), denied: new Map() }, step, key, isObservation };
}

/**
 * A history with the same verdict and a shorter search: an avatar that no answer shows was replaced before anybody read
 * it, so all such avatars can be merged, and a put of unknown outcome that sets nothing else can be left out.
 */
export function mergeUnseenAvatars(history: readonly Operation<Input>[]): Operation<Input>[] {
  const seen = history.map(({ outcome }) => outcome).join('\n');
  return history.flatMap((operation) => {
    const { input, outcome } = operation;
    if (outcome !== undefined || input.kind !== 'put' || typeof input.avatar !== 'string') return [operation];
    if (seen.includes(JSON.stringify(input.avatar))) return [operation];
    if (input.username === undefined) return [];
    return [{ ...operation, input: { ...input, avatar: 'unseen' } }];
  });
}

const keys = new WeakMap<Organization, string>();

function key(organization: Organization): string {
  const known = keys.get(organization);
  if (known !== undefined) return known;
  const made = makeKey(organization);
  keys.set(organization, made);
  return made;
}

function makeKey({ comparison, profiles, denied }: Organization): string {
  const sorted = <Value>(map: ReadonlyMap<string, Value>): [string, Value][] =>
    [...map].sort(([one], [other]) => (one < other ? -1 : 1));
  const held = sorted(profiles).map(([user, { username, avatar }]) => [user, username, avatar]);
  return JSON.stringify([comparison, held, sorted(denied)]);
}

function isObservation({ kind }: Input, outcome: string): boolean {
  return kind === 'read' || !/^(?:profile|banned|deleted|overwritten|compared)/.test(outcome);
}

function step(state: Organization, input: Input): Step<Organization>[] {
  const normalized = (name: string): string => normalizedName(name, state.comparison);
  const unchanged = (outcome: string): Step<Organization> => ({ outcome, after: state });

  switch (input.kind) {
    case 'read': {
      const profile = state.profiles.get(input.user);
      return [unchanged(profile === undefined ? 'no profile' : profileOutcome(profile))];
    }
    case 'put': {
      const { user, username, avatar } = input;
      const before = state.profiles.get(user) ?? {};
      if (username !== undefined && username !== before.username) {
        const holder = holderOf(state, username);
        const isTaken = holder !== undefined && holder !== user;
        const isDenied = state.denied.has(normalized(username));
        const refusals = [...(isDenied ? ['denied'] : []), ...(isTaken ? ['taken'] : [])];
        if (refusals.length > 0) return refusals.map(unchanged);
      }
      const profile = { ...before, ...(username !== undefined && { username }) };
      if (typeof avatar === 'string') profile.avatar = avatar;
      if (avatar === null) profile.avatar = undefined;
      return [{ outcome: profileOutcome(profile), after: withProfile(state, user, profile) }];
    }
    case 'ban': {
      const { username, replacement, banned } = input;
      const isDenied = state.denied.has(normalized(username));
      const user = holderOf(state, username);
      let { profiles } = state;
      if (user !== undefined) {
        // One that is denied already is skipped, and still replaced if it can be.
        const refused = (outcome: string) => unchanged(isDenied ? 'banned' : outcome);
        if (banned.some((name) => normalized(name) === normalized(replacement))) {
          // If the replacement's own ban fails, it is still in use.
          return [refused('replacement-denied'), refused('replacement-in-use')];
        }
        if (state.denied.has(normalized(replacement))) return [refused('replacement-denied')];
        if (holderOf(state, replacement) !== undefined) return [refused('replacement-in-use')];
        profiles = withProfile(state, user, {
          ...state.profiles.get(user),
          username: replacement,
        }).profiles;
      }
      const denied = isDenied ? state.denied : new Map(state.denied).set(normalized(username), username);
      return [{ outcome: 'banned', after: { ...state, profiles, denied } }];
    }
    case 'remove': {
      if (holderOf(state, input.username) !== undefined) return [unchanged('in use')];
      const denied = new Map(state.denied);
      if (!denied.delete(normalized(input.username))) return [unchanged('absent')];
      return [{ outcome: 'deleted', after: { ...state, denied } }];
    }
    case 'overwrite': {
      const inUse = input.usernames.filter((name) => holderOf(state, name) !== undefined);
      if (inUse.length > 0) return [unchanged(inUseOutcome(inUse))];
      const denied = new Map(input.usernames.map((name) => [normalized(name), name]));
      return [{ outcome: 'overwritten', after: { ...state, denied } }];
    }
    case 'look-up':
      return [unchanged(holderOf(state, input.username) === undefined ? 'not in use' : 'in use')];
    case 'look-up-denied':
      return [unchanged(state.denied.has(normalized(input.username)) ? 'denied' : 'not denied')];
    case 'compare': {
      const { comparison } = input;
      if (comparison === state.comparison) return [unchanged('compared')];
      const used = [...state.profiles.values()].flatMap(({ username }) => username ?? []);
      const normalizedNames = new Set(used.map((name) => normalizedName(name, comparison)));
      if (normalizedNames.size < used.length) return [unchanged('collisions')];
      // Of denied spellings that become one, any may be the one kept.
      const spellings = [...state.denied.values()];
      return [spellings, spellings.toReversed()].map((names) => {
        const denied = new Map(names.map((name) => [normalizedName(name, comparison), name]));
        return { outcome: 'compared', after: { ...state, comparison, denied } };
      });
    }
  }
}

function holderOf({ comparison, profiles }: Organization, name: string): string | undefined {
  const normalized = normalizedName(name, comparison);
  for (const [user, { username }] of profiles) {
    if (username !== undefined && normalizedName(username, comparison) === normalized) return user;
  }
  return undefined;
}

function withProfile(state: Organization, user: string, profile: Profile): Organization {
  return { ...state, profiles: new Map(state.profiles).set(user, profile) };
}
