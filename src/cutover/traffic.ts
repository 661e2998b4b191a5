import { setMaxListeners } from 'node:events';
import type { FileUrl } from '../contract/views.ts';
import type { Log } from '../log.ts';
import { isOutdated } from '../redis/changes.ts';
import { isStoreUnavailable } from '../redis/connection/connect.ts';
import { readOwnProfile } from '../redis/profiles.ts';
import { beginDenylistChange } from './adopt/denylist-change.ts';
import {
  forwardChange,
  recordUnmarked,
  settleUnmarked,
  type MirrorOptions,
  type Settle,
} from './adopt/mirrored-change.ts';
import { createProfileMarks } from './adopt/profile-change.ts';
import { createReadCheck } from './adopt/read-check.ts';
import { createFindings } from './compare/findings.ts';
import type { Gap } from './compare/pending.ts';
import type { ForwardedChange, Credentials } from './forward/calls.ts';
import { observed } from './forward/content.ts';
import { isMultipart } from './forward/headers.ts';
import { stopTimeout, type LegacyRequest, type LegacyResponse } from './forward/legacy.ts';

/** Requests while the legacy service is the authority. */
export type Traffic = ReturnType<typeof createTraffic>;

export interface TrafficOptions extends Pick<MirrorOptions, 'store' | 'legacy' | 'cutover'> {
  keyPrefix: string;
  fileUrl: FileUrl;
  log: Log;
}

/** While so much is under way, responses are not compared. */
const maxUnderWay = 500;

/** The longest response that is compared, in bytes. */
const maxProfileBytes = 256 * 1024;

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
  const markProfileChange = createProfileMarks(mirror);

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
    /** Forwards a read. `here`, what Redis knows of the caller, never rejects: it is undefined if Redis was away. */
    read: (credentials: Credentials | undefined, request: LegacyRequest) => {
      const lookup =
        credentials && readOwnProfile(store, credentials.base, credentials.sha256).catch(() => undefined);
      const answer = async (): Promise<LegacyResponse> => {
        const response = await legacy.send(request);
        if (credentials === undefined || request.method !== 'GET') return response;
        const body = observed(response.body, maxProfileBytes, (whole) => {
          if (underWay.size >= maxUnderWay) return;
          inBackground(async () => {
            const here = await lookup;
            if (here !== undefined) await checkRead(credentials, response, whole, here);
          });
        });
        return { ...response, body };
      };
      return { here: lookup, answer: answer() };
    },
    /** Forwards a change, and in mirror adopts it. */
    change: async (change: ForwardedChange): Promise<LegacyResponse> => {
      const { credentials, found } = change;
      let ended = (): void => {};
      inBackground(() => new Promise((resolve) => (ended = resolve)));
      const end = (): Promise<void> => change.end().finally(ended);
      const response = await forwardChange(mirror, { ...change, end }, () => mark(change));
      if (credentials !== undefined && found !== undefined) {
        const isForUser = change.operation === 'putProfile';
        const isNobodys = found.kind === 'known' && found.caller.userId === undefined;
        findings.judgeKey(credentials, response.status, isNobodys ? 'no-user' : found.kind, isForUser);
      }
      return response;
    },
    /** Waits for changes, and for background work that outlives the responses. */
    close: async (): Promise<void> => {
      // What takes too long is left in doubt: its marks stay.
      const giveUp = async (): Promise<void> => {
        stopping.abort();
        await legacy.close();
      };
      const late = setTimeout(() => void giveUp(), stopTimeout);
      while (underWay.size > 0) await Promise.all(underWay);
      clearTimeout(late);
      await giveUp();
      await findings.close();
    },
  };

  async function mark(change: ForwardedChange): Promise<Settle> {
    const { operation, credentials, found, admission } = change;
    // Without credentials there is nobody whose change it could be.
    if (credentials === undefined) return () => Promise.resolve();
    const isUpload = operation === 'putProfile' && isMultipart(change.request.headers);
    if (admission.mode !== 'mirror') {
      return async ({ kind }) => {
        // It may take effect in mirror. Not with an unknown key: anybody could make up organizations with gaps.
        if (kind === 'left-behind' || (kind === 'unknown' && found?.kind === 'known'))
          recordUnmarked(mirror, credentials.organizationId, 'unmarked-change', kind, isUpload);
      };
    }
    const unmarked = (gap: Gap): Settle => settleUnmarked(mirror, credentials, gap, isUpload);
    // Otherwise anybody could hold up others, and leave keys behind by making up organizations.
    if (found?.kind === 'unknown') return unmarked('unknown-key');
    try {
      const isOnDenylist = operation !== 'putProfile';
      // The legacy service refuses players the denylist: theirs must not hold up an administrator's.
      if (isOnDenylist && found?.caller.role !== 'player') {
        return await beginDenylistChange(mirror, credentials, change);
      }
      if (isOnDenylist || found === undefined) return unmarked('unmarked-change');
      const { userId } = found.caller;
      return userId === undefined
        ? unmarked('unknown-key')
        : await markProfileChange(credentials, userId, change);
    } catch (error) {
      // While Redis is away the change is forwarded all the same; one that a switch has left behind ends here.
      if (!isStoreUnavailable(error) || isOutdated(error)) throw error;
      return unmarked('unmarked-change');
    }
  }
}
