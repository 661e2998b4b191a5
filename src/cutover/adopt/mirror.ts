import { setTimeout as sleep } from 'node:timers/promises';
import type { ChangedProfile } from '../../contract/types.gen.ts';
import { ProblemError } from '../../contract/problems.ts';
import type { Caller } from '../../domain/caller.ts';
import type { AuthenticationOutcome } from '../../redis/api-keys/callers.ts';
import { isStoreUnavailable } from '../../redis/connection/connect.ts';
import { unsettledKey } from '../../redis/keys.ts';
import { isOutdated } from '../../redis/write-snapshot.ts';
import { differingFields, type Shown } from '../compare/fields.ts';
import type { Findings, Gap } from '../compare/findings.ts';
import { bodyOf, longestResponse, readJson } from '../forward/content.ts';
import type { Legacy, LegacyResponse } from '../forward/legacy.ts';
import { observed } from '../forward/observed.ts';
import type { Admission, Cutover } from '../switch/instance.ts';
import type { Change, Credentials, Forwarded } from '../traffic.ts';
import { beginDenylistChange, type DenylistChange } from './denylist.ts';
import { adoptProfile, readFromLegacy, type AdoptedUser, type AdoptionOutcome } from './profile.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { beginChange, drawAdoption, settleChange } from '../scripts.ts';

export interface MirrorOptions {
  store: RedisClient;
  legacy: Legacy;
  findings: Findings;
  cutover: Pick<Cutover, 'admitChange' | 'isLeftBehind' | 'since'>;
  /** Goes on with work that no response waits for. */
  inBackground: (work: () => Promise<void>) => void;
  /** Ends the waiting of a service that stops; marks of unsettled changes stay. */
  signal: AbortSignal;
}

type Relayed = Omit<Forwarded, 'caller'>;

/** What keeps Redis equal to the legacy service while that is the authority. */
export interface Mirror {
  /** Forwards a change, marked in Redis before, and adopts what has become of it. */
  change: (change: Change, caller: Promise<AuthenticationOutcome | undefined>) => Promise<Relayed>;
  /** Adopts a user whose profile differed in a read, unless it does not differ any more. */
  repair: (credentials: Credentials, userId: string, isSame: (shown: Shown) => Promise<boolean>) => void;
  /**
   * After a read that matched: removes what is left of the user's marks, as of an instance that was killed, where the
   * outcome of those changes must be visible by now and another read matches, too.
   */
  confirm: (
    credentials: Credentials,
    userId: string,
    isSame: (shown: Shown) => Promise<boolean>,
  ) => Promise<void>;
}

/** Repairs under way at most; the next read of a user that is left out begins another one. */
const mostRepairs = 64;

export function createMirror(options: MirrorOptions): Mirror {
  const { store, legacy, findings, cutover, inBackground, signal } = options;
  /** By when a change whose outcome is unknown has taken effect or never will, in ms. */
  const outcomeDelay = 2 * legacy.timeoutMs;
  const repairs = new Set<string>();

  /**
   * What a change begins with; undefined where Redis is away: the legacy service is the authority, and its clients
   * notice nothing. An instance that a switch has left behind must not forward the change, though: then it ends here.
   */
  async function begunOr<Result>(
    end: () => Promise<void>,
    credentials: Credentials | undefined,
    begin: () => Promise<Result>,
  ): Promise<Result | undefined> {
    try {
      if (credentials !== undefined) await findings.register(credentials.organizationId);
      return await begin();
    } catch (error) {
      if (isStoreUnavailable(error) && !isOutdated(error)) return undefined;
      await end();
      throw error;
    }
  }

  /** Adopts under the number of the change, or under the present one where a switch was withdrawn meanwhile. */
  async function adoptUnderAnyNumber(
    user: AdoptedUser,
    settles: number | undefined,
    isExpected: (shown: Shown) => boolean,
  ): Promise<AdoptionOutcome> {
    try {
      return await adoptProfile(options, user, settles, isExpected);
    } catch (error) {
      if (!isOutdated(error)) throw error;
      const admission = await admittedAfter(user.epoch);
      try {
        // Otherwise the mark stays, for the operator to see.
        if (admission?.mode !== 'mirror') throw error;
        return await adoptProfile(options, { ...user, epoch: admission.epoch }, settles, isExpected);
      } finally {
        admission?.release();
      }
    }
  }

  /** An admission under a later number than this, of which the next heartbeat tells. */
  async function admittedAfter(epoch: number): Promise<Admission | undefined> {
    for (let look = 0; look < 50; look++) {
      const admission = await cutover.admitChange();
      if (admission.epoch > epoch) return admission;
      admission.release();
      await sleep(100, undefined, { signal });
    }
    return undefined;
  }

  async function changeProfile(
    { credentials, request, admission, end }: Change,
    found: AuthenticationOutcome | undefined,
  ): Promise<Relayed> {
    const user = userOf(credentials, found, admission.epoch);
    const number =
      user &&
      (await begunOr(end, credentials, () =>
        beginChange(store, user.base, user.epoch, '', user.userId, 3 * legacy.timeoutMs),
      ));
    const gap: Gap | undefined =
      number !== undefined
        ? undefined
        : found === undefined || user !== undefined
          ? 'unmarked-change'
          : 'unknown-key';
    const note = (pendingMs: number): void => {
      if (gap !== undefined && credentials !== undefined) {
        findings.gap(credentials.organizationId, gap, pendingMs);
      }
    };
    const adopt = async (isExpected: (shown: Shown) => boolean): Promise<void> => {
      if (user === undefined || credentials === undefined) return;
      const { organizationId } = credentials;
      const { userId } = user;
      const outcome = await adoptUnderAnyNumber(user, number, isExpected).catch((error: unknown) => {
        if (number !== undefined && isStoreUnavailable(error)) {
          const reason = isOutdated(error) ? 'mode-switched' : 'store-unavailable';
          findings.adoptionFailed(organizationId, userId, number, reason);
        }
        throw error;
      });
      if (outcome === 'adopted') {
        findings.compared(organizationId, cutover.since(), { kind: 'adopted', userId });
      } else if (number !== undefined && (outcome === 'profile-not-shown' || outcome === 'overtaken')) {
        findings.adoptionFailed(organizationId, userId, number, outcome);
      }
    };
    const adoptLater = (): void => {
      note(outcomeDelay);
      inBackground(async () => {
        await sleep(outcomeDelay, undefined, { signal });
        await adopt(() => false);
      });
    };

    let response: LegacyResponse;
    try {
      response = await legacy.send(request);
    } catch (error) {
      adoptLater();
      await end();
      throw error;
    }
    const { status } = response;
    if (status < 300 && (await cutover.isLeftBehind(admission))) {
      if (number !== undefined && user !== undefined && credentials !== undefined) {
        findings.adoptionFailed(credentials.organizationId, user.userId, number, 'mode-switched');
      }
      note(0);
      await end();
      throw await leftBehind(response);
    }
    if (status >= 500) adoptLater();
    else if (status < 300) note(0);
    const body = observed(response.body, longestResponse, (whole) => {
      inBackground(async () => {
        try {
          if (status < 300) {
            const answer = await readJson(response, whole);
            await adopt((shown) => shows(shown, answer));
          } else if (status < 500 && user !== undefined && number !== undefined) {
            await settleChange(store, user.base, user.userId, number, 0);
          }
        } finally {
          await end();
        }
      });
    });
    return { ...response, body };
  }

  async function changeDenylist(change: Change): Promise<Relayed> {
    const { credentials, request, admission } = change;
    const { base } = credentials ?? {};
    const begun =
      base === undefined
        ? undefined
        : await begunOr(change.end, credentials, () =>
            beginDenylistChange(store, base, admission.epoch, 3 * legacy.timeoutMs),
          );
    let response: LegacyResponse;
    try {
      response = await legacy.send(request);
    } catch (error) {
      inBackground(() => finish(change, begun, 'denylist-outcome-unknown'));
      throw error;
    }
    const { status } = response;
    if (status < 300 && (await cutover.isLeftBehind(admission))) {
      await finish(change, begun, 'denylist-outcome-unknown');
      throw await leftBehind(response);
    }
    const body = observed(response.body, longestResponse, (whole) => {
      inBackground(async () => {
        if (status >= 500) return await finish(change, begun, 'denylist-outcome-unknown');
        if (status >= 300) return await finish(change, begun, undefined);
        return await finish(change, begun, await applied(change, begun, response, whole));
      });
    });
    return { ...response, body };
  }

  /** Applies an accepted denylist change; the gap that is left where that is not possible. */
  async function applied(
    { readDenylistRequest }: Change,
    begun: DenylistChange | undefined,
    response: LegacyResponse,
    whole: Buffer | undefined,
  ): Promise<Gap | undefined> {
    if (begun === undefined) return 'unmarked-change';
    // Empty is an answer, too: nothing is to be said. What is no JSON is not.
    const answer = whole?.length === 0 ? undefined : ((await readJson(response, whole)) ?? null);
    try {
      return await begun.apply(await readDenylistRequest(), answer);
    } catch {
      return 'denylist-change-interrupted';
    }
  }

  async function finish(
    { credentials, end }: Change,
    begun: DenylistChange | undefined,
    gap: Gap | undefined,
  ): Promise<void> {
    try {
      if (gap !== undefined && credentials !== undefined) {
        findings.gap(credentials.organizationId, gap, outcomeDelay);
        await findings.flush();
      }
      await begun?.end('settled');
    } finally {
      await end();
    }
  }

  async function repairNow(
    credentials: Credentials,
    userId: string,
    isSame: (shown: Shown) => Promise<boolean>,
  ): Promise<void> {
    await untilSettled(credentials.base, userId);
    const shown = await readFromLegacy(legacy, credentials);
    if (shown === 'unreadable') return;
    const compared = (kind: 'same' | 'adopted'): void =>
      findings.compared(credentials.organizationId, cutover.since(), { kind, userId });
    if (await isSame(shown)) {
      compared('same');
      return;
    }
    // Where the legacy service's reads lag behind, what it shows now is not what it will show.
    await sleep(1000, undefined, { signal });
    const admission = await cutover.admitChange();
    try {
      if (admission.mode !== 'mirror') return;
      const user = { base: credentials.base, userId, epoch: admission.epoch, headers: credentials.headers };
      const agrees = (again: Shown): boolean => differingFields(shown, again).length === 0;
      if ((await adoptProfile(options, user, undefined, agrees)) === 'adopted') compared('adopted');
    } finally {
      admission.release();
    }
  }

  async function confirm(
    credentials: Credentials,
    userId: string,
    isSame: (shown: Shown) => Promise<boolean>,
  ): Promise<void> {
    const { base } = credentials;
    if ((await store.hexists(unsettledKey(base), userId)) === 0) return;
    const [, drawnAt, , , , unsettled] = await drawAdoption(store, base, userId);
    if (unsettled > 0) return;
    const shown = await readFromLegacy(legacy, credentials);
    if (shown !== 'unreadable' && (await isSame(shown))) await settleChange(store, base, userId, '', drawnAt);
  }

  /** Waits while a change of the user may be in flight. */
  async function untilSettled(base: string, userId: string): Promise<void> {
    for (;;) {
      const unsettled = (await drawAdoption(store, base, userId))[5];
      if (unsettled <= 0) return;
      await sleep(Math.min(unsettled, 250), undefined, { signal });
    }
  }

  return {
    change: async (change, lookup) =>
      change.operation === 'putProfile'
        ? await changeProfile(change, await lookup)
        : await changeDenylist(change),
    confirm,
    repair: (credentials, userId, isSame) => {
      const id = `${credentials.base}${userId}`;
      if (repairs.has(id) || repairs.size >= mostRepairs) return;
      repairs.add(id);
      inBackground(async () => {
        try {
          await repairNow(credentials, userId, isSame);
        } finally {
          repairs.delete(id);
        }
      });
    },
  };
}

/** What a client is told whose change only the legacy service has, which is the authority no more. */
async function leftBehind(response: LegacyResponse): Promise<ProblemError> {
  await bodyOf(response).catch(() => {});
  return new ProblemError(
    'store-unavailable',
    'The service was switched over while this change was made; whether it took effect is unknown. Sending it again is safe.',
  );
}

function userOf(
  credentials: Credentials | undefined,
  found: { kind: string; caller?: Caller } | undefined,
  epoch: number,
): AdoptedUser | undefined {
  const userId = found?.caller?.userId;
  if (credentials === undefined || userId === undefined) return undefined;
  return { base: credentials.base, userId, epoch, headers: credentials.headers };
}

/** Whether a read shows the profile that a PUT answered with (contract 2.2). */
function shows(shown: Shown, answer: unknown): boolean {
  if (typeof answer !== 'object' || answer === null) return false;
  const { username, profilePictureUrl, avatarObjectDefinitionId } = answer as ChangedProfile;
  const { datasourceId, objectDefinitionId } = avatarObjectDefinitionId ?? {};
  const { evmLinkedWalletAddress: _wallet, avatar, ...rest } = shown ?? {};
  const { url: _url, ...reference } = avatar ?? {};
  return (
    differingFields(
      { ...rest, avatar: reference } as Shown,
      { username, profilePictureUrl, avatar: { datasourceId, objectDefinitionId } } as unknown as Shown,
    ).length === 0
  );
}
