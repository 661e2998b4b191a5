/** One call: when it was sent, when its answer came, and what that said. Times are from one monotonic clock. */
export interface Operation<Input> {
  input: Input;
  sentAt: number;
  /** Infinity if the outcome is unknown. */
  answeredAt: number;
  /** Undefined if no answer came, or one that does not say what was done: it may take effect later, or never. */
  outcome: string | undefined;
}

/** A sequential specification: what a call may answer in a state, and the state it leaves. */
export interface Model<State, Input> {
  initial: State;
  /** Every possible step of the call; one if the specification leaves no choice. */
  step: (state: State, input: Input) => readonly Step<State>[];
  /** The same text for equal states, and for no others. */
  key: (state: State) => string;
  /** Whether a call with this outcome has changed nothing, whatever the state. */
  isObservation: (input: Input, outcome: string) => boolean;
}

export interface Step<State> {
  outcome: string;
  after: State;
}

export type Verdict<State, Input> =
  | { kind: 'linearizable' }
  /** No order explains the history. `explained` answers could be, `state` is what they left, `stuck` could not follow. */
  | { kind: 'violation'; explained: number; state: State; stuck: Operation<Input>[] }
  /** The search was abandoned. */
  | { kind: 'undecided'; states: number };

/** A point of the search: which operations have taken effect, and the state they left. */
interface Node<State> {
  /** All known operations before this one have. */
  low: number;
  /** Bit i: known operation `low` + i has. */
  window: bigint;
  /** Bit i: unknown operation i has. */
  unknown: bigint;
  state: State;
}

/**
 * Whether a concurrent history is linearizable (Herlihy & Wing 1990): whether the operations could have taken effect
 * one after another, each at some instant between its sending and its answer, with the answers they got.
 *
 * The search is that of Wing & Gong (1993), with Lowe's memory of the points already visited (Testing for
 * linearizability, 2017): depth first, from each point it goes on with every operation that was sent before the
 * earliest answer still to be explained. An operation of unknown outcome may go in anywhere after its sending, or be
 * left out. `limit` bounds the points visited.
 */
export function checkLinearizability<State, Input>(
  { initial, step, key, isObservation }: Model<State, Input>,
  history: readonly Operation<Input>[],
  limit = 300_000,
): Verdict<State, Input> {
  const bySending = history.toSorted((one, other) => one.sentAt - other.sentAt);
  const known = bySending.filter(({ outcome }) => outcome !== undefined);
  const unknown = bySending.filter(({ outcome }) => outcome === undefined);

  /** The known operations that may come next, the earliest answer first. */
  const candidates = ({ low, window }: Node<State>): number[] => {
    let deadline = Infinity;
    const found: number[] = [];
    for (let at = low; at < known.length && (known[at]?.sentAt ?? 0) <= deadline; at++) {
      if (((window >> BigInt(at - low)) & 1n) === 1n) continue;
      found.push(at);
      deadline = Math.min(deadline, known[at]?.answeredAt ?? Infinity);
    }
    return found.sort((one, other) => (known[one]?.answeredAt ?? 0) - (known[other]?.answeredAt ?? 0));
  };

  /** The points one operation further; the most promising one last. */
  const successors = (node: Node<State>): Node<State>[] => {
    const next: Node<State>[] = [];
    const able = candidates(node);
    for (const at of able) {
      const operation = known[at];
      if (operation === undefined) continue;
      const { input, outcome = '' } = operation;
      const points = step(node.state, input)
        .filter((way) => way.outcome === outcome)
        .map(({ after }) => withKnown(node, at, after));
      // A call that changes nothing, and fits here, need not be tried anywhere else.
      if (points.length > 0 && isObservation(input, outcome)) return points;
      next.push(...points);
    }
    const deadline = known[able[0] ?? -1]?.answeredAt ?? Infinity;
    const before = key(node.state);
    for (const [at, operation] of unknown.entries()) {
      const bit = 1n << BigInt(at);
      if (operation.sentAt > deadline) break;
      if ((node.unknown & bit) !== 0n) continue;
      for (const { after } of step(node.state, operation.input)) {
        // One without effect can be left out.
        if (key(after) !== before) next.push({ ...node, unknown: node.unknown | bit, state: after });
      }
    }
    return next.toReversed();
  };

  /** Points visited, by all but the unknown operations that took effect on the way there. */
  const visited = new Map<string, bigint[]>();
  let visits = 0;
  let furthest: Node<State> = { low: 0, window: 0n, unknown: 0n, state: initial };
  const open = [furthest];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.low === known.length) return { kind: 'linearizable' };
    const { low, window, unknown: used, state } = node;
    const mark = `${low} ${window.toString(36)} ${key(state)}`;
    const before = visited.get(mark) ?? [];
    // Reaching the same point with more operations left to choose from is at least as good.
    if (before.some((fewer) => (fewer & used) === fewer)) continue;
    if (visits >= limit) return { kind: 'undecided', states: visits };
    visits++;
    visited.set(mark, [...before.filter((more) => (more & used) !== used), used]);
    if (low > furthest.low) furthest = node;
    open.push(...successors(node));
  }
  const stuck = candidates(furthest).flatMap((at) => known[at] ?? []);
  return { kind: 'violation', explained: furthest.low, state: furthest.state, stuck };
}

function withKnown<State>(node: Node<State>, at: number, state: State): Node<State> {
  let { low, window } = node;
  window |= 1n << BigInt(at - low);
  for (; (window & 1n) === 1n; window >>= 1n) low++;
  return { low, window, unknown: node.unknown, state };
}
