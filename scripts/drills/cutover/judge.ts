import { authorityOf, type Mode } from '../../../src/cutover/modes.ts';
import type { CutoverState } from '../../../src/cutover/switch/registry.ts';
import type { Call } from './clients.ts';
import type { LegacyChange, Stored } from './site.ts';

/** What was recorded on all sides. */
export interface Recorded {
  calls: readonly Call[];
  legacyChanges: readonly LegacyChange[];
  history: CutoverState['history'];
  /** What the authority has in the end. */
  stored: Stored;
  /** Users whose last change is recorded as possibly missing here; '' is the denylist. */
  inDoubt: ReadonlySet<string>;
}

const isDone = ({ status }: Call): boolean => typeof status === 'number' && status < 300;

/** What clients must not see: a failed request, except for those that are allowed. */
export function failedCalls(calls: readonly Call[], allows: (call: Call) => boolean): string[] {
  return calls
    .filter((call) => !isDone(call) && !allows(call))
    .map(
      ({ kind, user, bridge, status, detail, sentAt, endedAt }) =>
        `a ${kind} of ${user} by bridge ${bridge} was answered ${status} after ${endedAt - sentAt} ms (${detail ?? ''})`,
    );
}

/** Changes made by one side while the other one was the authority, and what reached the legacy service in native. */
export function doubleAuthority({ calls, legacyChanges, history }: Recorded): string[] {
  const found: string[] = [];
  const expect = (is: boolean, text: string): void => {
    if (!is) found.push(`${text} (${describe(history)})`);
  };
  const changes = new Map(calls.filter(({ kind }) => kind !== 'read').map((call) => [call.name, call]));
  for (const { name, sentAt, endedAt, by } of changes.values()) {
    if (by === 'redis') {
      const was = modesBetween(history, sentAt, endedAt).some((mode) => authorityOf(mode) === by);
      expect(was, `${name} was accepted by Redis (${sentAt}..${endedAt}) while it was not the authority`);
    }
  }
  for (const { name, at } of legacyChanges) {
    // Those before the first call were not made by clients.
    if (!changes.has(name)) continue;
    const by = changes.get(name)?.by;
    const then = modesBetween(history, at, at);
    // In reverse, changes are replayed to the legacy service: those that Redis has accepted.
    const isReplay = by !== 'legacy' && then.includes('reverse');
    const isOwn = by !== 'redis' && then.some((mode) => authorityOf(mode) === 'legacy');
    expect(isReplay || isOwn, `${name} reached the legacy service at ${at}, in ${then.join(' or ')}`);
  }
  return found;
}

/** The modes that were in force at some moment between two times. */
function modesBetween(history: Recorded['history'], from: number, to: number): Mode[] {
  return history
    .filter(({ since }, index) => since <= to && (history[index + 1]?.since ?? Infinity) >= from)
    .map(({ mode }) => mode);
}

function describe(history: Recorded['history']): string {
  return history
    .slice(-3)
    .map(({ mode, since }) => `${mode} since ${since}`)
    .join(', ');
}

/**
 * Reads older than the reader's own last change, and acknowledged changes that the authority does not have. What was
 * not acknowledged may take effect at any time, or never.
 */
export function lostChanges({ calls, stored, inDoubt }: Recorded): string[] {
  const found: string[] = [];
  const acceptable = new Map<string, Set<string>>();
  const unknown = new Map<string, string[]>();
  for (const call of [...calls].sort((one, other) => one.endedAt - other.endedAt)) {
    const { user, kind, name = '', status } = call;
    if (inDoubt.has(user)) continue;
    if (kind === 'change' && !isDone(call)) unknown.set(user, [...(unknown.get(user) ?? []), name]);
    if (kind === 'change' && isDone(call))
      acceptable.set(user, new Set([name, ...(unknown.get(user) ?? [])]));
    else if (kind === 'change') acceptable.get(user)?.add(name);
    const current = acceptable.get(user);
    if (kind === 'read' && status === 200 && current?.has(name) === false) {
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
