import { setTimeout as sleep } from 'node:timers/promises';
import type { FileUrl } from '../../contract/views.ts';
import { readOwnProfile, type ReadOutcome } from '../../redis/profiles.ts';
import { unsettledKey } from '../../redis/keys.ts';
import { compare, differingFields, shownByLegacy, type Shown } from '../compare/compare.ts';
import type { Credentials } from '../forward/calls.ts';
import type { LegacyResponse } from '../forward/legacy.ts';
import { adoptProfile, drawAdoption, readFromLegacy, settleChange } from './adoption.ts';
import type { MirrorOptions } from './mirrored-change.ts';

/** How many users are read again at a time; the next read of one that is left out starts over. */
const maxConcurrentReads = 64;

/** Compares what the legacy service has answered to a GET with what Redis would have said. In mirror, repairs Redis. */
export function createReadCheck(options: MirrorOptions & { fileUrl: FileUrl }) {
  const { store, legacy, findings, cutover, inBackground, signal, fileUrl } = options;
  const underCheck = new Set<string>();

  /** Whether the caller's profile here is the one shown. */
  async function isSame({ base, sha256 }: Credentials, shown: Shown): Promise<boolean> {
    const now = await readOwnProfile(store, base, sha256);
    return 'caller' in now && (await compare({ store, base, fileUrl }, shown, now)).length === 0;
  }

  /**
   * Adopts the user unless another read matches; either removes the marks of changes that must be visible by then.
   * `isMatch`: the last read matched, and nothing else is left to do.
   */
  async function lookAgain(credentials: Credentials, userId: string, isMatch: boolean): Promise<void> {
    const { organizationId, base } = credentials;
    let drawn = await drawAdoption(store, base, userId, '');
    if (isMatch && drawn.unsettled > 0) return;
    while (drawn.unsettled > 0) {
      await sleep(Math.min(drawn.unsettled, 250), undefined, { signal });
      drawn = await drawAdoption(store, base, userId, '');
    }
    const found = (kind: 'same' | 'adopted'): void =>
      findings.recordComparison(organizationId, cutover.since(), { kind, userId });
    const shown = await readFromLegacy(legacy, credentials);
    if (shown === 'unreadable') return;
    if (await isSame(credentials, shown)) {
      await settleChange(store, base, userId, '', drawn.time);
      found('same');
      return;
    }
    // If the legacy service's reads lag behind, they do not show the result yet.
    await sleep(1000, undefined, { signal });
    const admission = await cutover.admitChange();
    try {
      if (admission.mode !== 'mirror') return;
      const isExpected = (again: Shown): boolean => differingFields(shown, again).length === 0;
      const adoption = { credentials, userId, epoch: admission.epoch, isExpected };
      if ((await adoptProfile(options, adoption)) === 'adopted') found('adopted');
    } finally {
      admission.release();
    }
  }

  function beginToLookAgain(credentials: Credentials, userId: string, isMatch: boolean): void {
    const id = `${credentials.base}${userId}`;
    if (underCheck.has(id) || underCheck.size >= maxConcurrentReads) return;
    underCheck.add(id);
    inBackground(async () => {
      try {
        await lookAgain(credentials, userId, isMatch);
      } finally {
        underCheck.delete(id);
      }
    });
  }

  return async (
    credentials: Credentials,
    response: LegacyResponse,
    body: Buffer | undefined,
    here: ReadOutcome,
  ): Promise<void> => {
    const { organizationId, base } = credentials;
    const finding = findings.judgeKey(credentials, response.status, here.kind);
    if (finding !== 'agreed' || here.kind === 'unknown') return;
    const { userId } = here.caller;
    if (userId === undefined) return;
    const since = cutover.since();
    const shown = await shownByLegacy(response, body);
    if (shown === 'unreadable') {
      findings.recordComparison(organizationId, since, { kind: 'unreadable' });
      return;
    }
    const fields = await compare({ store, base, fileUrl }, shown, here);
    const isMirror = cutover.mode() === 'mirror';
    const isMarked = isMirror && (await store.hexists(unsettledKey(base), userId)) === 1;
    // It may have been adopted since it was read here.
    const isMatch = fields.length === 0 || (isMirror && !isMarked && (await isSame(credentials, shown)));
    // While a change of the user is in progress, only another read can decide, since it waits for the change.
    if (isMatch) findings.recordComparison(organizationId, since, { kind: 'same', userId });
    else if (!isMarked)
      findings.recordComparison(organizationId, since, { kind: 'different', userId, fields });
    if (isMirror && (!isMatch || isMarked)) beginToLookAgain(credentials, userId, isMatch);
  };
}
