import { ProblemError } from '../../contract/problems.ts';
import { organizationExists } from '../../redis/organizations.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import type { Findings, Gap } from '../compare/findings.ts';
import type { ForwardedChange, Credentials } from '../forward/calls.ts';
import { bodyOf, maxResponseBytes, observed } from '../forward/content.ts';
import type { Legacy, LegacyResponse } from '../forward/legacy.ts';
import type { Cutover } from '../switch/instance.ts';

/** Keeps Redis equal to the legacy service while that is the authority. */
export interface MirrorOptions {
  store: RedisClient;
  legacy: Legacy;
  findings: Findings;
  cutover: Pick<Cutover, 'mode' | 'since' | 'admitChange' | 'isLeftBehind' | 'holdWhile'>;
  /** Runs work in the background that no response waits for. */
  inBackground: (work: () => Promise<void>) => void;
  /** Aborts waiting when the service stops; marks of unsettled changes stay. */
  signal: AbortSignal;
}

/** After this time, a change whose outcome is unknown has taken effect or never will, in ms. */
export const outcomeDelay = ({ timeoutMs }: Legacy): number => 2 * timeoutMs;

/** After this time, the outcome of a change is certainly visible, in ms. */
export const visibleAfter = ({ timeoutMs }: Legacy): number => 3 * timeoutMs;

/** A change that is marked in Redis before it is forwarded, with what to do for each outcome. */
export interface MarkedChange {
  accepted: (response: LegacyResponse, whole: Buffer | undefined) => Promise<void>;
  refused: () => Promise<void>;
  /** It is unknown whether it took effect. */
  unknown: () => Promise<void>;
  /** Only the legacy service has it, which is no longer the authority. */
  leftBehind: () => Promise<void>;
}

/** Forwards a change once it is marked, and adopts its result. */
export async function forwardChange(
  { legacy, cutover, inBackground }: MirrorOptions,
  { request, admission, end }: ForwardedChange,
  mark: () => Promise<MarkedChange>,
): Promise<LegacyResponse> {
  let marked: MarkedChange;
  try {
    marked = await mark();
  } catch (error) {
    await end();
    throw error;
  }
  let response: LegacyResponse;
  try {
    response = await legacy.send(request);
  } catch (error) {
    inBackground(() => finish(marked.unknown));
    throw error;
  }
  const { status } = response;
  if (status < 300 && (await cutover.isLeftBehind(admission))) {
    await finish(marked.leftBehind);
    await bodyOf(response).catch(() => {});
    throw new ProblemError(
      'store-unavailable',
      'The service was switched over while this change was made; whether it took effect is unknown. Sending it again is safe.',
    );
  }
  const body = observed(response.body, admission.mode === 'mirror' ? maxResponseBytes : 0, (whole) => {
    inBackground(() =>
      finish(async () => {
        if (status < 300) await marked.accepted(response, whole);
        else if (status < 500) await marked.refused();
        else await marked.unknown();
      }),
    );
  });
  return { ...response, body };

  async function finish(settle: () => Promise<void>): Promise<void> {
    try {
      await settle();
    } finally {
      await end();
    }
  }
}

/** A change that could not be marked: if the legacy service makes it, a gap is recorded. */
export function unmarkedChange(
  { store, legacy, findings }: MirrorOptions,
  { organizationId, base }: Credentials,
  gap: Gap,
): MarkedChange {
  if (!findings.hasRoomFor(organizationId)) {
    throw new ProblemError(
      'store-unavailable',
      'Changes of too many organizations wait to be recorded; this one was not made.',
    );
  }
  const record = async (): Promise<void> => findings.gap(organizationId, gap, 0);
  return {
    accepted: record,
    refused: () => Promise.resolve(),
    unknown: async () => {
      // Of an organization that does not exist here, only what the legacy service accepts shows that there is one.
      const isMadeUp = gap === 'unknown-key' && !(await organizationExists(store, base).catch(() => true));
      if (!isMadeUp) findings.gap(organizationId, gap, outcomeDelay(legacy));
    },
    leftBehind: record,
  };
}
