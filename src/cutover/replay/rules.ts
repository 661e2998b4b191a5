/*
 * What is replayed when, and what follows from the legacy service's responses, as pure functions.
 * test/cutover/replay/schedules explores schedules with errors at every point.
 */

/** A change that waits to be replayed, as far as its order matters. */
export interface WaitingChange {
  id: string;
  /** Whose profile it changes; undefined for a change of the denylist. */
  userId?: string | undefined;
  /** The usernames that it claims and releases, each as `orderForm` makes it. */
  names: readonly string[];
}

/**
 * The changes of one organization that may be sent now, oldest first, at most `limit` of them. `waiting` is in the
 * order of acceptance; `isHeld` is true for those that are being sent, or are to be retried later.
 *
 * Two changes keep their order if they are of the same user or concern the same name; all others may overtake each
 * other. So the legacy service goes through states that differ from those of Redis only in what commutes, and no
 * claim meets a name that is yet to be released. A change of the denylist waits for everything before it, and
 * everything after waits for it.
 */
export function sendable<Change extends WaitingChange>(
  waiting: Iterable<Change>,
  isHeld: (change: Change) => boolean,
  limit = Infinity,
): Change[] {
  const found: Change[] = [];
  const users = new Set<string>();
  const names = new Set<string>();
  let isFirst = true;
  for (const change of waiting) {
    if (found.length >= limit) break;
    if (change.userId === undefined) {
      if (isFirst && !isHeld(change)) found.push(change);
      break;
    }
    isFirst = false;
    const isFree = !users.has(change.userId) && !change.names.some((name) => names.has(name));
    if (isFree && !isHeld(change)) found.push(change);
    users.add(change.userId);
    for (const name of change.names) names.add(name);
  }
  return found;
}

/** Equal for all names that either service may treat as the same: waiting unnecessarily is harmless. */
export function orderForm(name: string): string {
  return name.normalize('NFKC').toLowerCase().trim();
}

/** The outcome of a request. */
export type DeliveryOutcome =
  /**
   * `isForeign`: its body is neither empty nor JSON, so it is perhaps not the legacy service that has answered.
   * `retryAfter`: its Retry-After, in s.
   */
  | { kind: 'answered'; status: number; isForeign?: boolean; retryAfter?: number }
  /** It was certainly not delivered: there was no connection, for this reason. */
  | { kind: 'unreachable'; reason?: string }
  /** It may take effect, or may have done so: no response in time, or a broken connection. */
  | { kind: 'lost' };

/** What is known about a change besides the last response. */
export interface Attempts {
  /** How often it has been sent, including the last time. */
  sent: number;
  claimsName: boolean;
  /** Whether an older change of the organization waited when it was sent. */
  hasOlder: boolean;
}

export type Next =
  | { kind: 'done' }
  /** Send it again after so long; other changes may go on where the order allows. */
  | { kind: 'retry'; afterMs: number }
  /** The key was refused: use another one of the user, or this one later. */
  | { kind: 'other-key' }
  | { kind: 'pause'; reason: string }
  /** It will never be accepted: an operator decides. */
  | { kind: 'aside' };

/** After how long a change that keeps failing, or whose key is refused, is set aside, in ms. */
export const setAsideAfterMs = 600_000;

/** How many different keys may be refused in a row before the replay pauses. */
export const maxRefusedKeys = 3;

/** `longestAsked`: the longest that the legacy service may ask for. */
const delays = { first: 500, longest: 60_000, longestAsked: 600_000 };

/** How long to wait after this many attempts, in ms. */
export function delayAfter(attempts: number): number {
  return Math.min(delays.longest, delays.first * 2 ** Math.min(attempts - 1, 20));
}

/**
 * What follows from the outcome of a request. `timeoutMs`: how long the legacy service may take. After an unknown
 * outcome twice as long must pass before the change is sent again: an earlier request must not land after a later one.
 */
export function nextAfter(outcome: DeliveryOutcome, attempts: Attempts, timeoutMs: number): Next {
  const asked = outcome.kind === 'answered' ? (outcome.retryAfter ?? 0) * 1000 : 0;
  const afterMs = Math.max(delayAfter(attempts.sent), Math.min(asked, delays.longestAsked));
  const doubtful: Next = { kind: 'retry', afterMs: Math.max(afterMs, 2 * timeoutMs) };
  if (outcome.kind === 'unreachable') {
    const reason = outcome.reason === undefined ? '' : ` (${outcome.reason})`;
    return { kind: 'pause', reason: `the legacy service cannot be reached${reason}` };
  }
  if (outcome.kind === 'lost') return doubtful;
  const { status } = outcome;
  if (isMade(outcome)) return { kind: 'done' };
  if (isSuccess(status)) return pauseFor('something other than JSON');
  if (status >= 500) return doubtful;
  if ([408, 425, 429].includes(status)) return { kind: 'retry', afterMs };
  if ([401, 403].includes(status)) return { kind: 'other-key' };
  if (status < 400 || [404, 405, 410].includes(status)) {
    return pauseFor(String(status));
  }
  const mayBeReleased = status === 409 && attempts.claimsName && attempts.hasOlder;
  return mayBeReleased ? { kind: 'retry', afterMs: Math.min(afterMs, 5000) } : { kind: 'aside' };
}

function pauseFor(answer: string): Next {
  const reason = `the legacy service answered a change with ${answer}: LEGACY_BASE_URL is probably wrong`;
  return { kind: 'pause', reason };
}

/** Whether the legacy service says that it has made the change. A success that is foreign does not come from it. */
export function isMade(outcome: DeliveryOutcome): boolean {
  return outcome.kind === 'answered' && isSuccess(outcome.status) && !outcome.isForeign;
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300;

/**
 * Whether a probe (delivery.ts) shows that the service and the key work: 404 says that the user has no profile; 400 and
 * 422, that a ban needs a name. A success that is foreign does not come from the service.
 */
export function probeSucceeded(status: number, isForeign = false): boolean {
  return (isSuccess(status) && !isForeign) || [400, 404, 422].includes(status);
}
