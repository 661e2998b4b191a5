import { setMaxListeners } from 'node:events';
import type { Operation } from '../contract/operations.ts';
import type { MediaUrl } from '../contract/views.ts';
import type { Caller } from '../domain/caller.ts';
import type { Log } from '../log.ts';
import { authenticate, readOwnProfile, type ReadOutcome } from '../redis/api-keys/callers.ts';
import { unsettledKey } from '../redis/keys.ts';
import type { DenylistRequest } from './adopt/denylist.ts';
import { createMirror } from './adopt/mirror.ts';
import { compare, judgeKey, shownByLegacy } from './compare/compare.ts';
import type { Shown } from './compare/fields.ts';
import { createFindings } from './compare/findings.ts';
import type { Legacy, LegacyRequest, LegacyResponse } from './forward/legacy.ts';
import { observed } from './forward/observed.ts';
import type { Admission, Cutover } from './switch/instance.ts';
import type { RedisClient } from '../redis/connection/client.ts';

/** What a request authenticates with. */
export interface Credentials {
  organizationId: string;
  apiKey: string;
  /** What the organization's keys in Redis begin with. */
  base: string;
  /** Of the API key, as Redis knows it. */
  sha256: string;
  /** The headers that carry them: a name, its value, the next name … */
  headers: readonly string[];
  userAgent: string | undefined;
}

export type ChangeOperation = Exclude<Operation, 'getProfile'>;

/** A change to forward, with what is needed to adopt it afterwards. */
export interface Change {
  operation: ChangeOperation;
  credentials: Credentials | undefined;
  request: LegacyRequest;
  /** What its body says, of a denylist operation; rejects where it follows no contract. */
  readDenylistRequest: () => Promise<DenylistRequest>;
  admission: Pick<Admission, 'mode' | 'epoch'>;
  /** Called once, when the change has been adopted or nothing has to be done; must not reject. */
  end: () => Promise<void>;
}

/** The legacy service's response on its way to the client; its body has to be read to the end. */
export interface Forwarded extends Omit<LegacyResponse, 'body'> {
  body: AsyncIterable<Buffer>;
  /** The caller as Redis knows it. Never rejects. */
  caller: Promise<Caller | undefined>;
}

/** Requests while the legacy service is the authority. */
export interface Traffic {
  read: (credentials: Credentials | undefined, request: LegacyRequest) => Promise<Forwarded>;
  change: (change: Change) => Promise<Forwarded>;
  /** Waits for what goes on behind the responses. */
  close: () => Promise<void>;
}

export interface TrafficOptions {
  store: RedisClient;
  keyPrefix: string;
  legacy: Legacy;
  mediaUrl: MediaUrl;
  cutover: Pick<Cutover, 'mode' | 'since' | 'admitChange' | 'isLeftBehind' | 'holdWhile'>;
  log: Log;
}

/** Responses that wait to be compared at most; beyond, they are not. */
const mostComparisons = 500;

/** How long a bridge that stops waits for changes whose outcome is unknown, in ms. */
const longestDoubt = 4000;

/** The longest response that is compared, in bytes. */
const longestProfile = 256 * 1024;

export function createTraffic(options: TrafficOptions): Traffic {
  const { store, keyPrefix, legacy, mediaUrl, cutover, log } = options;
  const findings = createFindings(store, keyPrefix, log);
  // What is in doubt must be on record before a switch looks for it.
  cutover.holdWhile(findings.hasUnsavedGaps);
  const underWay = new Set<Promise<void>>();
  const stopping = new AbortController();
  // Any number of changes may wait for their outcome, each with a listener.
  setMaxListeners(0, stopping.signal);
  const mirror = createMirror({ store, legacy, findings, cutover, inBackground, signal: stopping.signal });

  /** Goes on with work that no response waits for. */
  function inBackground(work: () => Promise<void>): void {
    const running = work()
      .catch((error: unknown) => {
        if (!stopping.signal.aborted)
          log.warn('mirroring the legacy service failed', { reason: String(error) });
      })
      .finally(() => underWay.delete(running));
    underWay.add(running);
  }

  async function compareRead(
    credentials: Credentials,
    response: LegacyResponse,
    body: Buffer | undefined,
    lookup: Promise<ReadOutcome | undefined>,
  ): Promise<void> {
    const { organizationId, base, sha256, userAgent } = credentials;
    const here = await lookup;
    if (here === undefined) return;
    const finding = judgeKey(response.status, here);
    if (finding !== undefined) findings.judgedKey(organizationId, finding, sha256, userAgent);
    if (finding !== 'agreed' || here.kind === 'unknown') return;
    const since = cutover.since();
    const legacyProfile = await shownByLegacy({ ...response, body });
    const context = { store, base, mediaUrl };
    const comparison = await compare(context, legacyProfile, here);
    if (comparison === undefined) return;
    if (comparison.kind === 'unreadable' || cutover.mode() !== 'mirror') {
      findings.compared(organizationId, since, comparison);
      return;
    }
    const { userId } = comparison;
    const isSame = async (shown: Shown): Promise<boolean> => {
      const now = await readOwnProfile(store, base, sha256);
      return now.kind !== 'unknown' && (await compare(context, shown, now))?.kind === 'same';
    };
    if (comparison.kind === 'different') {
      // While a change of the user is under way, only the repair can tell: it waits for the change.
      if ((await store.hexists(unsettledKey(base), userId)) === 0) {
        const wasAdopted = legacyProfile !== 'unreadable' && (await isSame(legacyProfile));
        findings.compared(organizationId, since, wasAdopted ? { kind: 'same', userId } : comparison);
        if (wasAdopted) return;
      }
      mirror.repair(credentials, userId, isSame);
    } else {
      findings.compared(organizationId, since, comparison);
      await mirror.confirm(credentials, userId, isSame);
    }
  }

  return {
    read: async (credentials, request) => {
      const lookup = quietly(credentials && readOwnProfile(store, credentials.base, credentials.sha256));
      const response = await legacy.send(request);
      const caller = lookup.then(callerOf);
      if (credentials === undefined || request.method !== 'GET') return { ...response, caller };
      const body = observed(response.body, longestProfile, (whole) => {
        if (underWay.size < mostComparisons) {
          inBackground(() => compareRead(credentials, response, whole, lookup));
        }
      });
      return { ...response, body, caller };
    },
    change: async (change) => {
      const { credentials, request, admission, end } = change;
      const lookup = quietly(credentials && authenticate(store, credentials.base, credentials.sha256));
      const caller = lookup.then(callerOf);
      if (admission.mode === 'mirror') {
        const response = await mirror.change(change, lookup);
        judge(credentials, response.status, lookup);
        return { ...response, caller };
      }
      try {
        const response = await legacy.send(request);
        judge(credentials, response.status, lookup);
        return { ...response, body: observed(response.body, 0, () => void end()), caller };
      } catch (error) {
        await end();
        throw error;
      }
    },
    close: async () => {
      // Changes whose outcome is unknown are adopted, if that does not take too long; else their marks stay.
      const late = setTimeout(() => stopping.abort(), longestDoubt);
      while (underWay.size > 0) await Promise.all(underWay);
      clearTimeout(late);
      stopping.abort();
      await findings.close();
      await legacy.close();
    },
  };

  /** Records how the two services judged the key of a change. */
  function judge(
    credentials: Credentials | undefined,
    status: number,
    lookup: Promise<{ kind: string } | undefined>,
  ): void {
    if (credentials === undefined) return;
    inBackground(async () => {
      const here = await lookup;
      const finding = here && judgeKey(status, here);
      const { organizationId, sha256, userAgent } = credentials;
      if (finding !== undefined) findings.judgedKey(organizationId, finding, sha256, userAgent);
    });
  }
}

/** What a look-up finds; undefined where there is none, or Redis is away: the legacy service answers all the same. */
async function quietly<Found>(lookup: Promise<Found> | undefined): Promise<Found | undefined> {
  try {
    return await lookup;
  } catch {
    return undefined;
  }
}

function callerOf(found: { kind: string; caller?: Caller } | undefined): Caller | undefined {
  return found?.caller;
}
