import { setTimeout as sleep } from 'node:timers/promises';
import type { ChangedProfile, Profile } from '../../contract/types.gen.ts';
import { isStoreUnavailable } from '../../redis/connection/connect.ts';
import { isOutdated } from '../../redis/changes.ts';
import { differingFields, toShown, type ComparedField, type Shown } from '../compare/compare.ts';
import type { ForwardedChange, Credentials } from '../forward/calls.ts';
import { isMultipart } from '../forward/headers.ts';
import type { Admission } from '../switch/instance.ts';
import { adoptProfile, beginChange, settleChange, type Adoption, type AdoptionOutcome } from './adoption.ts';
import { outcomeDelay, visibleAfter, type MirrorOptions, type Settle } from './mirrored-change.ts';

/** Creates what marks a user as changed by a request that is about to be forwarded. */
export function createProfileMarks(options: MirrorOptions) {
  /**
   * Users with a change of unknown outcome whose adoption is waiting, and whether there was another such change since: all
   * are adopted together, so that a service that fails is not asked once for each.
   */
  const waiting = new Map<string, boolean>();
  return async (credentials: Credentials, userId: string, change: ForwardedChange): Promise<Settle> =>
    await markProfileChange(options, waiting, credentials, userId, change);
}

async function markProfileChange(
  options: MirrorOptions,
  waiting: Map<string, boolean>,
  credentials: Credentials,
  userId: string,
  { admission, request }: ForwardedChange,
): Promise<Settle> {
  const { store, legacy, findings, cutover, inBackground, signal } = options;
  const { organizationId, base } = credentials;
  const isForm = isMultipart(request.headers);
  const [, number] = await Promise.all([
    findings.register(organizationId),
    beginChange(store, base, admission.epoch, '', userId, visibleAfter(legacy), isForm ? '1' : ''),
  ]);

  async function adopt(expected: Pick<Adoption, 'isExpected' | 'exists'>): Promise<void> {
    try {
      const outcome = await adoptUnderAnyEpoch(expected);
      if (outcome === 'adopted') {
        findings.recordComparison(organizationId, cutover.since(), { kind: 'adopted', userId });
      } else if (outcome === 'profile-not-shown' || outcome === 'overtaken') {
        findings.recordFailedAdoption(organizationId, userId, number, outcome);
      }
    } catch (error) {
      if (isStoreUnavailable(error)) {
        const reason = isOutdated(error) ? 'mode-switched' : 'store-unavailable';
        findings.recordFailedAdoption(organizationId, userId, number, reason);
      }
      throw error;
    }
  }

  /** Adopts under the epoch of the change, or under the current one if a switch was withdrawn meanwhile. */
  async function adoptUnderAnyEpoch(
    expected: Pick<Adoption, 'isExpected' | 'exists'>,
  ): Promise<AdoptionOutcome> {
    const adoption = { credentials, userId, epoch: admission.epoch, settles: number, isForm, ...expected };
    try {
      return await adoptProfile(options, adoption);
    } catch (error) {
      if (!isOutdated(error)) throw error;
      const later = await admittedAfter(admission.epoch);
      try {
        // Otherwise the mark stays, so that the operator sees it.
        if (later?.mode !== 'mirror') throw error;
        return await adoptProfile(options, { ...adoption, epoch: later.epoch });
      } finally {
        later?.release();
      }
    }
  }

  /** An admission under a later epoch than this, which the next heartbeat brings. */
  async function admittedAfter(epoch: number): Promise<Admission | undefined> {
    for (let look = 0; look < 50; look++) {
      const later = await cutover.admitChange();
      if (later.epoch > epoch) return later;
      later.release();
      await sleep(100, undefined, { signal });
    }
    return undefined;
  }

  /** Adopts once the outcome must be visible: with it, that of other changes of the user that were made meanwhile. */
  async function adoptLater(): Promise<void> {
    const id = base + userId;
    const isWaiting = waiting.has(id);
    waiting.set(id, isWaiting);
    if (isWaiting) return;
    try {
      let pause = outcomeDelay(legacy);
      do {
        waiting.set(id, false);
        await sleep(pause, undefined, { signal });
        await adopt({ isExpected: () => false });
        // An adoption settles the marks of others only once they were due.
        pause = visibleAfter(legacy);
      } while (waiting.get(id) === true);
    } finally {
      waiting.delete(id);
    }
  }

  return async (outcome) => {
    switch (outcome.kind) {
      case 'accepted':
        return await adopt({ isExpected: (shown) => shows(shown, outcome.answer), exists: true });
      case 'refused':
        return void (await settleChange(store, base, userId, number, 0));
      case 'unknown':
        return inBackground(adoptLater);
      case 'left-behind':
        return findings.recordFailedAdoption(organizationId, userId, number, 'mode-switched');
    }
  };
}

/** What the answer to a PUT (contract 2.2) does not say. */
const unsaid = new Set<ComparedField>(['avatar.url', 'evmLinkedWalletAddress']);

/** Whether a read shows the profile that a PUT answered with. */
function shows(shown: Shown, answer: unknown): boolean {
  if (typeof answer !== 'object' || answer === null) return false;
  const { avatarObjectDefinitionId: avatar, ...rest } = answer as ChangedProfile;
  const answered = toShown({ ...rest, avatar } as Profile);
  if (answered === 'unreadable') return false;
  return differingFields(answered, shown).every((field) => unsaid.has(field));
}
