import { authorityOf, type Mode } from '../../../src/cutover/modes.ts';
import {
  acknowledges,
  follow,
  vouchedAuthority,
  type Announcement,
  type SwitchPhase,
  type Position,
} from '../../../src/cutover/switch/protocol.ts';
import { explore, Violation, type Explored } from '../../support/models/explore.ts';
import {
  advance,
  announcement,
  begin,
  emptied,
  forget,
  heartbeat,
  withdraw,
  type StoreState,
} from './store-model.ts';

/*
 * Explores every interleaving of two instances, the tool, the store's scripts, time and faults. Values are the numbers
 * of writes: a value is as old as it is small. A change in mirror goes to the legacy service, and is then adopted in
 * Redis; a change in reverse is made in Redis and queued, and replayed some time later.
 */

interface Change {
  mode: Mode;
  epoch: number;
  value: number;
  /** A change in mirror has reached the legacy service, and is still to be adopted. */
  isForwarded: boolean;
}

interface Instance {
  position: Position;
  /** An answer of the store that has not arrived yet. */
  reply: { announced: Announcement; isLate: boolean } | null;
  change: Change | null;
  /** `paused` may go on at any time, `dead` can be seen to have ended, `gone` cannot and never comes back. */
  life: 'running' | 'paused' | 'dead' | 'gone';
  /** What it last heard is too old to serve reads by while a switch is under way. */
  isLapsed: boolean;
  /** It has not heard of Redis since that has lost its data: what it reads there until then cannot be helped. */
  isUnaware: boolean;
}

interface Tool {
  at: 'idle' | 'stop' | 'check' | 'raise' | 'move' | 'reads' | 'withdraw' | 'dead';
  token: string;
  to: Mode;
}

interface World {
  store: StoreState;
  instances: Record<string, Instance>;
  tool: Tool;
  /** The value that each side has, and the highest one that was acknowledged to a client. */
  legacy: number;
  redis: number;
  accepted: number;
  /** What Redis refuses lower epochs than. */
  fence: number;
  queue: number[];
  /** A change that reached the legacy service may not have been adopted. */
  isUnsettled: boolean;
  /** Redis has come back without its data. */
  isEmptied: boolean;
  left: { writes: number; switches: number; faults: number; pauses: number; losses: number };
}

export interface Scenario {
  from: Mode;
  writes: number;
  switches: number;
  faults: number;
  /** How often an instance may stop responding without being seen to have ended. */
  pauses: number;
  /** How often Redis may come back without its data. */
  losses?: number;
  /** Whether the operator may wrongly assume that a paused instance has ended: then reads are not judged. */
  mayAssume?: boolean;
  /** A mistake in the protocol, which the exploration has to find. */
  mistake?:
    | 'acknowledges-before-changes-end'
    | 'admits-before-reads-moved'
    | 'withdraws-without-confirmation'
    | 'does-not-fence'
    | 'ignores-queue'
    | 'takes-lost-for-native';
}

const ids = ['a', 'b'];
const other = (mode: Mode): Mode => (mode === 'mirror' ? 'reverse' : 'mirror');

function start({ from, writes, switches, faults, pauses, losses = 0 }: Scenario): World {
  let store: StoreState = { mode: from, epoch: 1, since: 1, lost: 0, made: 1, done: '', beats: {} };
  const instances: Record<string, Instance> = {};
  for (const id of ids) {
    store = heartbeat(store, id, { epoch: 0, since: 0 }, '-', 'none');
    instances[id] = {
      position: follow(announcement(store), 0),
      reply: null,
      change: null,
      life: 'running',
      isLapsed: false,
      isUnaware: false,
    };
  }
  return {
    store,
    instances,
    tool: { at: 'idle', token: 't0', to: from },
    legacy: 0,
    redis: 0,
    accepted: 0,
    fence: 0,
    queue: [],
    isUnsettled: false,
    isEmptied: false,
    left: { writes, switches, faults, pauses, losses },
  };
}

/** Everything that can happen next. A violated rule is thrown. */
function* nextSteps(world: World, scenario: Scenario): Generator<[step: string, next: World]> {
  for (const id of ids) yield* instanceSteps(world, id, scenario);
  yield* toolSteps(world, scenario);
  if (world.left.losses > 0) yield ['Redis loses its data', withoutData(world)];
  if (world.queue.length > 0) {
    const [value = 0, ...queue] = world.queue;
    yield ['replay', { ...world, legacy: Math.max(world.legacy, value), queue }];
  }
  const { underWay } = world.store;
  // The lease of a switch ends, whether its tool is dead, held up or only slow.
  if (underWay !== undefined && !underWay.isExpired && (world.tool.at === 'dead' || world.left.faults > 0)) {
    yield [
      'lease ends',
      {
        ...world,
        store: { ...world.store, underWay: { ...underWay, isExpired: true } },
        left: { ...world.left, faults: world.left.faults - (world.tool.at === 'dead' ? 0 : 1) },
      },
    ];
  }
}

/** A later verify finds that Redis lacks what it had. */
function withoutData(world: World): World {
  const instances = Object.entries(world.instances).map(([id, one]) => [
    id,
    { ...one, reply: null, isUnaware: true },
  ]);
  return {
    ...world,
    store: emptied,
    instances: Object.fromEntries(instances) as World['instances'],
    redis: 0,
    fence: 0,
    queue: [],
    isUnsettled: true,
    isEmptied: true,
    left: { ...world.left, losses: world.left.losses - 1 },
  };
}

function* instanceSteps(world: World, id: string, scenario: Scenario): Generator<[string, World]> {
  const instance = world.instances[id];
  if (instance === undefined) return;
  const { position, reply, change, life, isLapsed } = instance;
  const { left } = world;
  const put = (changed: Partial<Instance>, rest: Partial<World> = {}): World => ({
    ...world,
    ...rest,
    instances: { ...world.instances, [id]: { ...instance, ...changed } },
  });

  // Time passes: first the instance stops trusting what it heard, then the store goes on without it. To lapse only keeps
  // an instance from reading, so nothing is missed if it does so no earlier than it matters.
  const isFresh = !isLapsed || reply?.isLate === false;
  const isGoingBack = world.store.underWay?.phase === 'back';
  if (isFresh && isGoingBack && life !== 'dead' && position.phase !== undefined) {
    yield [`${id}: lapses`, put({ isLapsed: true, reply: reply && { ...reply, isLate: true } })];
  }
  const beat = world.store.beats[id];
  if (!isFresh && isGoingBack && beat !== undefined && !beat.isSilent) {
    const beats = { ...world.store.beats, [id]: { ...beat, isSilent: true } };
    yield [`${id}: silent`, { ...world, store: { ...world.store, beats } }];
  }
  if (life === 'paused') yield [`${id}: goes on`, put({ life: 'running' })];
  if (life === 'dead' && beat !== undefined) {
    yield [`${id}: removed`, { ...world, store: forget(world.store, id) }];
  }
  if (life !== 'running') return;

  if (left.pauses > 0) {
    const fewer = { left: { ...left, pauses: left.pauses - 1 } };
    yield [`${id}: paused`, put({ life: 'paused' }, fewer)];
    yield [`${id}: gone`, put({ life: 'gone', isLapsed: true, reply: null }, fewer)];
  }
  if (left.faults > 0) {
    const isUnsettled = world.isUnsettled || change?.mode === 'mirror';
    yield [
      `${id}: killed`,
      put(
        { life: 'dead', change: null, reply: null },
        { isUnsettled, left: { ...left, faults: left.faults - 1 } },
      ),
    ];
  }

  if (reply === null) {
    const admitted = change === null || scenario.mistake === 'acknowledges-before-changes-end' ? 0 : 1;
    const phase = acknowledges(position, admitted) ?? '-';
    const store = heartbeat(world.store, id, position, phase, vouchedAuthority(position));
    yield [`${id}: heartbeat`, put({ reply: { announced: announcement(store), isLate: false } }, { store })];
  } else {
    const { announced } = reply;
    const isLost = announced.isLost && scenario.mistake !== 'takes-lost-for-native';
    const next = follow({ ...announced, isLost }, position.epoch);
    yield [`${id}: hears`, put({ position: next, reply: null, isLapsed: reply.isLate, isUnaware: false })];
    if (left.faults > 0) {
      yield [`${id}: reply lost`, put({ reply: null }, { left: { ...left, faults: left.faults - 1 } })];
    }
  }

  // A read, whose result shows at once.
  if (scenario.mayAssume !== true && !(isLapsed && position.phase !== undefined) && !position.isLost) {
    const isLegacy = authorityOf(position.reads) === 'legacy';
    const value = isLegacy ? world.legacy : world.redis;
    if (value < world.accepted && (isLegacy || !instance.isUnaware))
      throw new Violation(`${id} reads a state older than an accepted change`);
  }

  const mayAdmit =
    position.changes ??
    (scenario.mistake === 'admits-before-reads-moved' && position.phase === 'reads'
      ? position.reads
      : undefined);
  if (mayAdmit !== undefined && change === null && left.writes > 0) {
    const admitted: Change = {
      mode: mayAdmit,
      epoch: position.epoch,
      value: scenario.writes - left.writes + 1,
      isForwarded: false,
    };
    yield [`${id}: admits`, put({ change: admitted }, { left: { ...left, writes: left.writes - 1 } })];
  }
  if (change === null) return;
  const { mode, epoch, value, isForwarded } = change;
  const accepted = Math.max(world.accepted, value);
  const isRefused = epoch < world.fence && scenario.mistake !== 'does-not-fence';
  if (mode === 'reverse') {
    // Without its data, Redis knows no caller.
    if (isRefused || world.isEmptied) yield [`${id}: change refused`, put({ change: null })];
    else
      yield [
        `${id}: changes Redis`,
        put(
          { change: null },
          { redis: Math.max(world.redis, value), accepted, queue: [...world.queue, value] },
        ),
      ];
  } else if (!isForwarded) {
    yield [
      `${id}: changes legacy`,
      put({ change: { ...change, isForwarded: true } }, { legacy: Math.max(world.legacy, value), accepted }),
    ];
  } else {
    const redis = isRefused ? world.redis : Math.max(world.redis, world.legacy);
    yield [`${id}: adopts`, put({ change: null }, { redis })];
  }
}

function* toolSteps(world: World, scenario: Scenario): Generator<[string, World]> {
  const { tool, store, left } = world;
  if (tool.at === 'dead') return;
  const go = (at: Tool['at'], rest: Partial<World> = {}): World => ({
    ...world,
    ...rest,
    tool: { ...tool, at },
  });

  if (tool.at === 'idle') {
    if (left.switches === 0) return;
    // What was lost is for the operator to decide.
    if (store.mode === '' || store.mode === 'native') return;
    const token = `t${left.switches}`;
    const to = other(store.mode);
    const { state, reply } = begin(store, token, store.mode, to);
    if (reply !== 'begun') return;
    yield [
      'tool: begins',
      {
        ...world,
        store: state,
        tool: { at: 'stop', token, to },
        left: { ...left, switches: left.switches - 1 },
      },
    ];
    return;
  }
  if (left.faults > 0) yield ['tool: killed', go('dead', { left: { ...left, faults: left.faults - 1 } })];
  if (tool.at === 'withdraw') {
    const { state, reply } = withdraw(store, tool.token);
    yield [
      'tool: withdraws',
      go(reply === 'waiting' ? 'withdraw' : 'idle', { store: unconfirmed(state, scenario) }),
    ];
    return;
  }
  // It has waited for too long.
  yield ['tool: gives up', go('withdraw')];
  if (scenario.mayAssume === true) {
    for (const id of ids) {
      if (world.instances[id]?.life === 'paused' && store.beats[id] !== undefined) {
        yield [`operator: assumes that ${id} has ended`, { ...world, store: forget(store, id) }];
      }
    }
  }
  const advanced = (phase: SwitchPhase, goOn: boolean, next: Tool['at']): [string, World][] => {
    const { state, reply } = advance(store, tool.token, phase, goOn);
    if (reply === 'waiting') return [];
    if (reply === 'lost') return [['tool: finds it withdrawn', go('withdraw', { store: state })]];
    const steps: [string, World][] = [
      [`tool: ${goOn ? 'goes on from' : 'sees'} ${phase}`, go(next, { store: state })],
    ];
    if (goOn && left.faults > 0) {
      const fewer = { ...left, faults: left.faults - 1 };
      steps.push([`tool: goes on from ${phase}, reply lost`, go('withdraw', { store: state, left: fewer })]);
    }
    return steps;
  };
  switch (tool.at) {
    case 'stop':
      yield* advanced('stop', false, 'raise');
      break;
    case 'check': {
      const isClear =
        scenario.mistake === 'ignores-queue' || (world.queue.length === 0 && !world.isUnsettled);
      yield [
        isClear ? 'tool: finds no obstacle' : 'tool: finds an obstacle',
        go(isClear ? 'move' : 'withdraw'),
      ];
      break;
    }
    case 'raise':
      // The epoch that this switch drew: the store may have drawn a higher one since.
      if (store.underWay?.token === tool.token) {
        yield ['tool: raises the epoch', go('check', { fence: Math.max(world.fence, store.epoch) })];
      } else {
        yield ['tool: raises the epoch late', go('check')];
      }
      break;
    case 'move':
      yield* advanced('stop', true, 'reads');
      break;
    case 'reads':
      yield* advanced('reads', true, 'idle');
  }
}

/** With the mistake: a switch that is withdrawn after reads moved ends at once. */
function unconfirmed(state: StoreState, { mistake }: Scenario): StoreState {
  if (mistake !== 'withdraws-without-confirmation' || state.underWay?.phase !== 'back') return state;
  const { underWay: _ended, ...rest } = state;
  return rest;
}

function check(world: World, { mayAssume = false }: Scenario): void {
  const authorities = new Set<string>();
  for (const { change, life } of Object.values(world.instances)) {
    if (change === null || life === 'dead' || life === 'gone') continue;
    // One that Redis will refuse does no harm.
    if (change.mode === 'reverse' && change.epoch < world.fence) continue;
    authorities.add(authorityOf(change.mode));
  }
  if (!mayAssume && authorities.size > 1) throw new Violation('two authorities at the same time');
  if (world.store.mode === '') return;
  const value = authorityOf(world.store.mode) === 'legacy' ? world.legacy : world.redis;
  if (world.store.underWay === undefined && value < world.accepted)
    throw new Violation('an accepted change is lost');
}

/**
 * Whether every instance that still runs admits changes, and nothing is under way. After Redis has lost its data, some
 * may wait for the operator.
 */
function isAtRest({ instances, store, isEmptied }: World): boolean {
  return Object.values(instances).every(
    ({ life, position: { changes, isLost, isRegressed } }) =>
      life !== 'running' || changes === store.mode || (isEmptied && (isLost || isRegressed)),
  );
}

/** Identifies a state. */
function keyOf({
  store,
  instances,
  tool,
  legacy,
  redis,
  accepted,
  fence,
  queue,
  isUnsettled,
  isEmptied,
  left,
}: World): string {
  const { underWay, beats } = store;
  const parts: unknown[] = [
    store.mode,
    store.epoch,
    store.lost,
    store.done,
    legacy,
    redis,
    accepted,
    fence,
    queue,
    isUnsettled,
    isEmptied,
  ];
  parts.push(tool.at, tool.token, tool.to, left.writes, left.switches, left.faults, left.pauses, left.losses);
  if (underWay !== undefined) parts.push(underWay.to, underWay.phase, underWay.token, underWay.isExpired);
  for (const id of ids) {
    const beat = beats[id];
    parts.push('|', beat?.epoch, beat?.phase, beat?.isSilent);
    const one = instances[id];
    if (one === undefined) continue;
    const { position, reply, change, life, isLapsed } = one;
    parts.push(
      life,
      isLapsed,
      one.isUnaware,
      position.isLost,
      position.isRegressed,
      position.reads,
      position.changes,
      position.epoch,
      position.phase,
    );
    if (reply !== null) {
      const { announced, isLate } = reply;
      parts.push(
        isLate,
        announced.isLost,
        announced.hasLostSwitch,
        announced.mode,
        announced.epoch,
        announced.underWay?.to,
        announced.underWay?.phase,
      );
    }
    parts.push('/', change?.mode, change?.epoch, change?.value, change?.isForwarded);
  }
  return parts.join();
}

export function exploreSwitches(scenario: Scenario): Explored {
  return explore<World>({
    start: start(scenario),
    nextSteps: (world) => nextSteps(world, scenario),
    keyOf,
    isAtRest,
    check: (world) => check(world, scenario),
  });
}
