import { authorityOf, type Authority, type Mode } from '../../../src/cutover/modes.ts';
import type { CutoverState } from '../../../src/cutover/switch/registry.ts';
import type { Call } from './clients.ts';
import type { LegacyChange, Stored } from './site.ts';

/** What was recorded on all sides. */
export interface Record {
  calls: readonly Call[];
  legacyChanges: readonly LegacyChange[];
  history: CutoverState['history'];
  mode: Mode;
  /** What the authority has in the end. */
  stored: Stored;
  /** Users whose last change is on record as possibly missing here; '' is the denylist. */
  inDoubt: ReadonlySet<string>;
}

const isDone = ({ status }: Call): boolean => typeof status === 'number' && status < 300;

/** What clients must not see: a failed request, but for what is allowed. */
export function failedCalls(calls: readonly Call[], allows: (call: Call) => boolean): string[] {
  return calls
    .filter((call) => !isDone(call) && !allows(call))
    .map(
      ({ kind, user, bridge, status, detail, sentAt, endedAt }) =>
        `a ${kind} of ${user} by bridge ${bridge} was answered ${status} after ${endedAt - sentAt} ms (${detail ?? ''})`,
    );
}

/** Changes made by one side while the other one was the authority. */
export function doubleAuthority({ calls, legacyChanges, history }: Record): string[] {
  const madeByLegacy = new Map(legacyChanges.map(({ name, at }) => [name, at]));
  const found: string[] = [];
  for (const call of calls) {
    if (call.kind === 'read' || !isDone(call) || call.name === undefined) continue;
    const at = madeByLegacy.get(call.name);
    const [maker, from, to]: [Authority, number, number] =
      at === undefined ? ['redis', call.sentAt, call.endedAt] : ['legacy', at, at];
    if (wasAuthority(history, maker, from, to)) continue;
    found.push(
      `${call.name} was accepted by ${maker} while it was not the authority (${from}..${to}; ${describe(history)})`,
    );
  }
  return found;
}

/** Whether a side was the authority at some moment between two times. */
function wasAuthority(history: Record['history'], side: Authority, from: number, to: number): boolean {
  return history.some(({ mode, since }, index) => {
    const end = history[index + 1]?.since ?? Infinity;
    return authorityOf(mode) === side && since <= to && end >= from;
  });
}

function describe(history: Record['history']): string {
  return history
    .slice(-3)
    .map(({ mode, since }) => `${mode} since ${since}`)
    .join(', ');
}

/** Reads older than the reader's own last change, and acknowledged changes that the authority does not have. */
export function lostChanges({ calls, stored, inDoubt }: Record): string[] {
  const found: string[] = [];
  const acceptable = new Map<string, Set<string>>();
  for (const call of [...calls].sort((one, other) => one.endedAt - other.endedAt)) {
    const { user, kind, name = '', status } = call;
    if (inDoubt.has(user)) continue;
    const current = acceptable.get(user);
    if (kind === 'change' && isDone(call)) acceptable.set(user, new Set([name]));
    else if (kind === 'change') current?.add(name);
    else if (kind === 'read' && status === 200 && current?.has(name) === false) {
      found.push(`${user} read ${name} at ${call.endedAt} instead of ${[...current].join(' or ')}`);
    }
  }
  for (const [user, names] of acceptable) {
    const name = stored.usernames[user] ?? '';
    if (!names.has(name)) found.push(`${user} is called ${name} instead of ${[...names].join(' or ')}`);
  }
  if (inDoubt.has('')) return found;
  const denied = new Set(stored.denied);
  for (const call of calls) {
    if (call.kind === 'ban' && isDone(call) && !denied.has(call.name ?? ''))
      found.push(`the ban of ${call.name} was acknowledged and is lost`);
  }
  return found;
}
