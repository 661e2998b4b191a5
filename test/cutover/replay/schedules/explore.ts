import { isDeepStrictEqual } from 'node:util';
import { explore, Violation, type Explored } from '../../../support/models/explore.ts';
import {
  nextAfter,
  sendable,
  type DeliveryOutcome,
  type WaitingChange,
} from '../../../../src/cutover/replay/rules.ts';

/*
 * Explores every schedule of a replay: users who exchange names and a denylist that changes, while requests overtake
 * each other, are lost, fail, land late, and replayers die. Both sides are tiny models: who has which name, and which
 * names are denied.
 */

interface Side {
  /** The name of each user. */
  names: Record<string, string>;
  /** The avatar of each user: the number of the change that set it. */
  avatars: Record<string, number>;
  denied: string[];
}

type Change =
  | { kind: 'put'; userId: string; from: string; to: string }
  | { kind: 'avatar'; userId: string; avatar: number }
  | { kind: 'ban'; name: string; replacement: string }
  | { kind: 'remove'; name: string };

interface Entry {
  id: number;
  change: Change;
  /**
   * `marked`: a replayer sends it, and waits for the response. `doubtful`: it has been sent, by whomever, and nobody
   * knows whether it has taken effect.
   */
  state: 'waiting' | 'marked' | 'doubtful';
  /** The status with which the legacy service answers the request of a marked change, once it has taken effect. */
  response: number | undefined;
  hasFailed: boolean;
}

/** A request whose response nobody awaits any more. It may still take effect. */
interface Stray {
  id: number;
  change: Change;
}

interface World {
  redis: Side;
  legacy: Side;
  queue: Entry[];
  strays: Stray[];
  accepted: number;
  faults: number;
}

export interface Scenario {
  /** The users with their names at first. */
  users: Record<string, string>;
  names: string[];
  /** How many changes clients make. */
  changes: number;
  /** How many errors there are: a lost response, a lost request, a 5xx, a replayer that is killed. */
  faults: number;
  withDenylist?: boolean;
  withAvatars?: boolean;
  /** Whether users also state the names that they have already. */
  withRepeats?: boolean;
  /** A mistake in the rules, which the exploration has to find. */
  mistake?:
    | 'ignores-names'
    | 'ignores-users'
    | 'ignores-the-denylist'
    | 'does-not-wait'
    | 'does-not-mark'
    | 'sends-the-current-state';
}

/** In ms; the model has no clock. */
const timeout = 1000;

/** All that can happen next. */
function* nextSteps(world: World, scenario: Scenario): Generator<[step: string, next: World]> {
  if (world.accepted < scenario.changes) yield* acceptances(world, scenario);
  const { queue, faults } = world;

  for (const entry of sendableOf(queue, scenario)) {
    yield [`send ${nameOf(entry)}`, replace(world, { ...entry, state: 'marked' })];
  }
  for (const entry of queue) {
    const name = nameOf(entry);
    if (entry.state === 'marked' && entry.response === undefined) {
      const { side: legacy, status } = perform(world.legacy, requestOf(entry, world, scenario));
      yield [
        `${name} takes effect: ${status}`,
        { ...replace(world, { ...entry, response: status }), legacy },
      ];
    }
    if (entry.state === 'marked' && entry.response !== undefined) {
      yield [`${name} has its response`, settle(world, entry, answered(entry.response))];
    }
    const isInDoubt = world.strays.some(({ id }) => id === entry.id) && scenario.mistake !== 'does-not-wait';
    if (entry.state === 'doubtful' && !isInDoubt) {
      yield [`${name} has waited`, replace(world, { ...entry, state: 'waiting' })];
    }
  }
  for (const stray of world.strays) {
    const gone = { ...world, strays: world.strays.filter((one) => one !== stray) };
    yield [
      `late ${nameOf(stray)} takes effect`,
      { ...gone, legacy: perform(world.legacy, stray.change).side },
    ];
    yield [`late ${nameOf(stray)} is lost`, gone];
  }
  if (faults === 0) return;

  const hit = { ...world, faults: faults - 1 };
  for (const entry of queue) {
    if (entry.state !== 'marked') continue;
    const name = nameOf(entry);
    yield [`${name}: no response in time`, settle(abandon(hit, [entry], scenario), entry, { kind: 'lost' })];
    if (entry.response !== undefined) continue;
    yield [`${name}: 503`, settle(hit, entry, answered(503))];
    yield [`${name}: unreachable`, settle(hit, entry, { kind: 'unreachable' })];
  }
  const marked = queue.filter(({ state }) => state === 'marked');
  if (marked.length > 0) {
    const state: Entry['state'] = scenario.mistake === 'does-not-mark' ? 'waiting' : 'doubtful';
    const taken = queue.map((entry) =>
      entry.state === 'marked' ? { ...entry, state, response: undefined, hasFailed: true } : entry,
    );
    yield [
      'the replayer is killed, another one takes over',
      { ...abandon(hit, marked, scenario), queue: taken },
    ];
  }
}

/** Nobody awaits the responses to these changes any more. */
function abandon(world: World, entries: readonly Entry[], scenario: Scenario): World {
  const strays = entries
    .filter(({ response }) => response === undefined)
    .map((entry) => ({ id: entry.id, change: requestOf(entry, world, scenario) }));
  return { ...world, strays: [...world.strays, ...strays] };
}

/** What clients may do next. */
function* acceptances(world: World, scenario: Scenario): Generator<[string, World]> {
  const { names, withDenylist = false, withAvatars = false, withRepeats = false } = scenario;
  const id = world.accepted;
  const accept = (change: Change): World => {
    const entry: Entry = { id, change, state: 'waiting', response: undefined, hasFailed: false };
    const { side: redis } = perform(world.redis, change);
    return { ...world, redis, queue: [...world.queue, entry], accepted: id + 1 };
  };
  const isFree = (name: string): boolean =>
    !Object.values(world.redis.names).includes(name) && !world.redis.denied.includes(name);
  if (withAvatars) {
    for (const userId of Object.keys(world.redis.names)) {
      yield [`client: ${userId} sets an avatar`, accept({ kind: 'avatar', userId, avatar: id })];
    }
  }
  if (withRepeats) {
    for (const [userId, own] of Object.entries(world.redis.names)) {
      yield [`client: ${userId} keeps ${own}`, accept({ kind: 'put', userId, from: own, to: own })];
    }
  }
  for (const name of names) {
    if (isFree(name)) {
      for (const [userId, from] of Object.entries(world.redis.names)) {
        yield [`client: ${userId} takes ${name}`, accept({ kind: 'put', userId, from, to: name })];
      }
    }
    if (!withDenylist) continue;
    if (world.redis.denied.includes(name)) {
      yield [`client: allow ${name}`, accept({ kind: 'remove', name })];
    } else {
      const replacement = names.find((one) => one !== name && isFree(one));
      if (replacement !== undefined) {
        yield [`client: ban ${name} for ${replacement}`, accept({ kind: 'ban', name, replacement })];
      }
    }
  }
}

/** The contract's operations on a side, as both services understand them. */
function perform(side: Side, change: Change): { side: Side; status: number } {
  const holder = (name: string): string | undefined =>
    Object.keys(side.names).find((userId) => side.names[userId] === name);
  switch (change.kind) {
    case 'put': {
      const { userId, to } = change;
      if (side.denied.includes(to)) return { side, status: 422 };
      const taken = holder(to);
      if (taken !== undefined && taken !== userId) return { side, status: 409 };
      return { side: { ...side, names: { ...side.names, [userId]: to } }, status: 200 };
    }
    case 'avatar': {
      const avatars = { ...side.avatars, [change.userId]: change.avatar };
      return { side: { ...side, avatars }, status: 200 };
    }
    case 'ban': {
      const { name, replacement } = change;
      if (side.denied.includes(name)) return { side, status: 204 };
      const userId = holder(name);
      if (userId !== undefined && (side.denied.includes(replacement) || holder(replacement) !== undefined)) {
        return { side, status: 422 };
      }
      const names = userId === undefined ? side.names : { ...side.names, [userId]: replacement };
      return { side: { ...side, names, denied: [...side.denied, name].sort() }, status: 204 };
    }
    case 'remove':
      if (holder(change.name) !== undefined) return { side, status: 422 };
      return {
        side: { ...side, denied: side.denied.filter((name) => name !== change.name) },
        status: 200,
      };
  }
}

function sendableOf(queue: readonly Entry[], { mistake }: Scenario): Entry[] {
  const waiting = queue.map((entry): WaitingChange & { entry: Entry } => {
    const { change } = entry;
    const id = String(entry.id);
    if (change.kind === 'ban' || change.kind === 'remove') {
      return { id, entry, names: [], userId: mistake === 'ignores-the-denylist' ? id : undefined };
    }
    const names = mistake === 'ignores-names' || change.kind === 'avatar' ? [] : [change.from, change.to];
    return { id, entry, names, userId: mistake === 'ignores-users' ? id : change.userId };
  });
  return sendable(waiting, ({ entry }) => entry.state !== 'waiting').map(({ entry }) => entry);
}

/** What is sent. With a mistake, what has failed is not sent again as it was, but with the user's present name. */
function requestOf({ change, hasFailed }: Entry, { redis }: World, { mistake }: Scenario): Change {
  if (mistake !== 'sends-the-current-state' || change.kind !== 'put' || !hasFailed) return change;
  return { ...change, to: redis.names[change.userId] ?? change.to };
}

/** What the replayer makes of an outcome. */
function settle(world: World, entry: Entry, outcome: DeliveryOutcome): World {
  const hasOlder = world.queue[0]?.id !== entry.id;
  const attempts = { sent: 1, claimsName: entry.change.kind === 'put', hasOlder };
  const next = nextAfter(outcome, attempts, timeout);
  switch (next.kind) {
    case 'done':
      return { ...world, queue: world.queue.filter(({ id }) => id !== entry.id) };
    case 'retry':
    case 'pause': {
      // It may have taken effect.
      const isDoubtful = outcome.kind === 'lost' || (outcome.kind === 'answered' && outcome.status >= 500);
      if (isDoubtful && next.kind === 'retry' && next.afterMs < 2 * timeout)
        throw new Violation('a change in doubt is sent too early');
      const state = isDoubtful ? 'doubtful' : 'waiting';
      return replace(world, { ...entry, state, response: undefined, hasFailed: true });
    }
    default:
      throw new Violation('the legacy service refuses a change');
  }
}

function answered(status: number): DeliveryOutcome {
  return { kind: 'answered', status };
}

function replace(world: World, entry: Entry): World {
  return { ...world, queue: world.queue.map((one) => (one.id === entry.id ? entry : one)) };
}

function nameOf({ id, change }: Pick<Entry, 'id' | 'change'>): string {
  switch (change.kind) {
    case 'put':
      return `${id} (${change.userId} takes ${change.to})`;
    case 'avatar':
      return `${id} (avatar of ${change.userId})`;
    default:
      return `${id} (${change.kind} ${change.name})`;
  }
}

function keyOf({ redis, legacy, queue, strays, accepted, faults }: World): string {
  return JSON.stringify([redis, legacy, queue, strays, accepted, faults]);
}

export function exploreSchedules(scenario: Scenario): Explored {
  const side: Side = { names: scenario.users, avatars: {}, denied: [] };
  const { faults } = scenario;
  const isAtRest = ({ queue, strays, accepted }: World): boolean =>
    queue.length === 0 && strays.length === 0 && accepted === scenario.changes;
  return explore<World>({
    start: { redis: side, legacy: side, queue: [], strays: [], accepted: 0, faults },
    nextSteps: (world) => nextSteps(world, scenario),
    keyOf,
    isAtRest,
    check: (world) => {
      if (isAtRest(world) && !isDeepStrictEqual(world.legacy, world.redis)) {
        throw new Violation('the two sides differ in the end');
      }
    },
  });
}
