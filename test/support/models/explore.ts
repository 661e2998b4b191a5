/** A rule that does not hold in some state; thrown while states are explored. */
export class Violation extends Error {}

/** States and the steps between them. */
export interface StateGraph<State> {
  start: State;
  /** Everything that can happen next. Throws a Violation if something happens that must not. */
  nextSteps: (state: State) => Iterable<[step: string, next: State]>;
  /** Identifies a state. */
  keyOf: (state: State) => string;
  /** Whether nothing is waiting. Such a state must be reachable from every state. */
  isAtRest: (state: State) => boolean;
  /** Throws a Violation for a forbidden state. */
  check?: (state: State) => void;
}

export interface Explored {
  states: number;
  /** How many of them are at rest; not counted any further than the first violation. */
  atRest: number;
  /** The first violation found and the steps that lead there; undefined if there is none. */
  violation?: { rule: string; steps: string[] };
}

/** Walks over every state that can be reached; stops at the first violation. */
export function explore<State>({ start, nextSteps, keyOf, isAtRest, check }: StateGraph<State>): Explored {
  const states: State[] = [start];
  const seen = new Map<string, number>([[keyOf(start), 0]]);
  const cameFrom: { from: number; step: string }[] = [{ from: -1, step: '' }];
  const leadsTo: number[][] = [[]];
  const resting: number[] = [];
  const violated = (rule: string, at: number): Explored => {
    const steps: string[] = [];
    for (let now = at; now > 0; now = cameFrom[now]?.from ?? 0) steps.unshift(cameFrom[now]?.step ?? '');
    return { states: states.length, atRest: resting.length, violation: { rule, steps } };
  };

  for (let at = 0; at < states.length; at++) {
    const state = states[at] as State;
    try {
      check?.(state);
      if (isAtRest(state)) resting.push(at);
      for (const [step, next] of nextSteps(state)) {
        const key = keyOf(next);
        let number = seen.get(key);
        if (number === undefined) {
          number = states.push(next) - 1;
          seen.set(key, number);
          cameFrom.push({ from: at, step });
          leadsTo.push([]);
        }
        leadsTo[number]?.push(at);
      }
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      return violated(error.message, at);
    }
  }
  const stuck = findStuck(resting, leadsTo);
  return stuck === -1
    ? { states: states.length, atRest: resting.length }
    : violated('a change waits forever', stuck);
}

/** A state from which none at rest can be reached; -1 if there is none. */
function findStuck(resting: readonly number[], leadsTo: readonly number[][]): number {
  const canRest = leadsTo.map(() => false);
  const open = [...resting];
  for (const at of resting) canRest[at] = true;
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const before of leadsTo[at] ?? []) {
      if (canRest[before] === true) continue;
      canRest[before] = true;
      open.push(before);
    }
  }
  return canRest.indexOf(false);
}
