import { setMaxListeners } from 'node:events';
import type { FileUrl } from '../contract/views.ts';
import type { Caller } from '../domain/caller.ts';
import type { Log } from '../log.ts';
import { readOwnProfile } from '../redis/profiles.ts';
import { authenticate } from '../redis/changes.ts';
import type { RedisClient } from '../redis/connection/client.ts';
import { beginDenylistChange } from './adopt/denylist-change.ts';
import { forwardMirrored } from './adopt/mirrored-change.ts';
import { markProfileChange } from './adopt/profile-change.ts';
import { createReadCheck } from './adopt/read-check.ts';
import { createFindings, judgeKey } from './compare/findings.ts';
import type { Change, Credentials, Relayed } from './forward/calls.ts';
import { observed } from './forward/content.ts';
import type { Legacy, LegacyRequest } from './forward/legacy.ts';
import type { Cutover } from './switch/instance.ts';

/** What is relayed to a client, and the caller as Redis knows it, which never rejects. */
export interface Forwarded extends Relayed {
  caller: Promise<Caller | undefined>;
}

/** Requests while the legacy service is the authority. */
export type Traffic = ReturnType<typeof createTraffic>;

export interface TrafficOptions {
  store: RedisClient;
  keyPrefix: string;
  legacy: Legacy;
  fileUrl: FileUrl;
  cutover: Pick<Cutover, 'mode' | 'since' | 'admitChange' | 'isLeftBehind' | 'holdWhile'>;
  log: Log;
}

/** The maximum of responses that wait to be compared; further ones are not compared. */
const mostComparisons = 500;

/** How long a stopping bridge waits for changes whose outcome is unknown, in ms. */
const longestDoubt = 4000;

/** The longest response that is compared, in bytes. */
const longestProfile = 256 * 1024;

export function createTraffic(options: TrafficOptions) {
  const { store, keyPrefix, legacy, cutover, log } = options;
  const findings = createFindings(store, keyPrefix, log);
  // Doubts must be recorded before a switch looks for them.
  cutover.holdWhile(findings.hasUnsavedGaps);
  const underWay = new Set<Promise<void>>();
  const stopping = new AbortController();
  // Any number of changes may wait for their outcome, each with its own listener.
  setMaxListeners(0, stopping.signal);
  const mirror = { ...options, findings, inBackground, signal: stopping.signal };
  const checkRead = createReadCheck(mirror);

  function inBackground(work: () => Promise<void>): void {
    const running = work()
      .catch((error: unknown) => {
        if (!stopping.signal.aborted)
          log.warn('mirroring the legacy service failed', { reason: String(error) });
      })
      .finally(() => underWay.delete(running));
    underWay.add(running);
  }

  return {
    read: async (credentials: Credentials | undefined, request: LegacyRequest): Promise<Forwarded> => {
      const lookup = quietly(credentials && readOwnProfile(store, credentials.base, credentials.sha256));
      const response = await legacy.send(request);
      const caller = lookup.then(callerOf);
      if (credentials === undefined || request.method !== 'GET') return { ...response, caller };
      const body = observed(response.body, longestProfile, (whole) => {
        if (underWay.size >= mostComparisons) return;
        inBackground(async () => {
          const here = await lookup;
          if (here !== undefined) await checkRead(credentials, response, whole, here);
        });
      });
      return { ...response, body, caller };
    },
    change: async (change: Change): Promise<Forwarded> => {
      const { credentials, caller, admission } = change;
      const lookup = caller
        ? Promise.resolve({ kind: 'known', caller })
        : quietly(credentials && authenticate(store, credentials.base, credentials.sha256));
      // Without credentials there is nobody whose change it could be.
      const response =
        credentials !== undefined && admission.mode === 'mirror'
          ? await mirrored(change, credentials, lookup)
          : await passed(change);
      if (credentials !== undefined) inBackground(() => judge(credentials, response.status, lookup));
      return { ...response, caller: lookup.then(callerOf) };
    },
    /** Waits for background work that outlives the responses. */
    close: async (): Promise<void> => {
      // Changes whose outcome is unknown are adopted if that does not take too long; otherwise their marks stay.
      const late = setTimeout(() => stopping.abort(), longestDoubt);
      while (underWay.size > 0) await Promise.all(underWay);
      clearTimeout(late);
      stopping.abort();
      await findings.close();
      await legacy.close();
    },
  };

  async function passed({ request, end }: Change): Promise<Relayed> {
    try {
      const response = await legacy.send(request);
      return { ...response, body: observed(response.body, 0, () => void end()) };
    } catch (error) {
      await end();
      throw error;
    }
  }

  async function mirrored(change: Change, credentials: Credentials, lookup: Lookup): Promise<Relayed> {
    return await forwardMirrored(mirror, credentials.organizationId, change, async () => {
      if (change.operation !== 'putProfile') return await beginDenylistChange(mirror, credentials, change);
      const here = await lookup;
      if (here === undefined) return 'unmarked-change';
      const userId = here.caller?.userId;
      if (userId === undefined) return 'unknown-key';
      return await markProfileChange(mirror, credentials, userId, change);
    });
  }

  /** Records which services accepted the key of a change. */
  async function judge(credentials: Credentials, status: number, lookup: Lookup): Promise<void> {
    const here = await lookup;
    const finding = here && judgeKey(status, here.kind);
    const { organizationId, sha256, userAgent } = credentials;
    if (finding !== undefined) findings.judgedKey(organizationId, finding, sha256, userAgent);
  }
}

/** What is known here of a caller; undefined if Redis is away, or there is nothing to look up. */
type Lookup = Promise<{ kind: string; caller?: Caller } | undefined>;

/** The legacy service answers, whatever a look-up finds. */
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
