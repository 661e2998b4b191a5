import { Readable } from 'node:stream';
import { ProblemError } from '../../contract/problems.ts';
import { organizationExists } from '../../redis/organizations.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import type { Findings } from '../compare/findings.ts';
import type { Gap } from '../compare/pending.ts';
import type { ForwardedChange, Credentials } from '../forward/calls.ts';
import { bodyOf, maxResponseBytes, observed, readAnswer } from '../forward/content.ts';
import { isUndelivered, type Legacy, type LegacyResponse } from '../forward/legacy.ts';
import type { Cutover } from '../switch/instance.ts';

/** What adopting changes of the legacy service needs. */
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

/** What became of a change that was forwarded. */
type ChangeOutcome =
  /** With what the response's body says (readAnswer). */
  | { kind: 'accepted'; answer: unknown }
  /** Also one that did not reach the legacy service. */
  | { kind: 'refused' }
  /** It is unknown whether it took effect. */
  | { kind: 'unknown' }
  /** Only the legacy service has it, which is no longer the authority. */
  | { kind: 'left-behind' };

/** Settles a change that was marked in Redis before it was forwarded. */
export type Settle = (outcome: ChangeOutcome) => Promise<void>;

/** Forwards a change once it is marked, and adopts its result. */
export async function forwardChange(
  { legacy, cutover, inBackground }: MirrorOptions,
  { request, admission, end }: ForwardedChange,
  mark: () => Promise<Settle>,
): Promise<LegacyResponse> {
  let settle: Settle;
  try {
    settle = await mark();
  } catch (error) {
    await end();
    throw error;
  }
  const finish = async (outcome: ChangeOutcome): Promise<void> => {
    try {
      await settle(outcome);
    } finally {
      await end();
    }
  };
  let response: LegacyResponse;
  try {
    response = await legacy.send(request);
  } catch (error) {
    inBackground(() => finish({ kind: isUndelivered(error) ? 'refused' : 'unknown' }));
    throw error;
  }
  if (response.status < 300 && (await cutover.isLeftBehind(admission))) {
    await finish({ kind: 'left-behind' });
    await bodyOf(response).catch(() => {});
    throw new ProblemError(
      'store-unavailable',
      'The service was switched over while this change was made; whether it took effect is unknown. Sending it again is safe.',
    );
  }
  const body = observed(response.body, admission.mode === 'mirror' ? maxResponseBytes : 0, (whole) => {
    inBackground(async () => await finish(await outcomeOf(response, whole)));
  });
  return { ...response, body: readAhead(body) };
}

/** A body that is read as it comes, even if its reader is slow: a change has not ended before its response has. */
function readAhead(body: AsyncIterable<Buffer>): Readable {
  const ahead = Readable.from(body, { objectMode: false, highWaterMark: maxResponseBytes });
  // A reader gets an error by itself; without a reader, it does not matter.
  ahead.on('error', () => {});
  ahead.read(0);
  return ahead;
}

async function outcomeOf(response: LegacyResponse, whole: Buffer | undefined): Promise<ChangeOutcome> {
  const { status } = response;
  if (status < 300) return { kind: 'accepted', answer: await readAnswer(response, whole) };
  // A redirect may lead to the result of the change.
  return { kind: status >= 400 && status < 500 ? 'refused' : 'unknown' };
}

/** Records that the legacy service may have a change that was not marked. `isUpload`: it may have brought a picture. */
export function recordUnmarked(
  { legacy, findings }: Pick<MirrorOptions, 'legacy' | 'findings'>,
  organizationId: string,
  gap: Gap,
  kind: ChangeOutcome['kind'],
  isUpload: boolean,
): void {
  const pendingMs = kind === 'unknown' ? outcomeDelay(legacy) : 0;
  findings.recordGap(organizationId, gap, pendingMs);
  if (isUpload) findings.recordGap(organizationId, 'unmarked-upload', pendingMs);
}

/** Settles a change that could not be marked: if the legacy service makes it, a gap is recorded. */
export function settleUnmarked(
  options: MirrorOptions,
  { organizationId, base }: Credentials,
  gap: Gap,
  isUpload = false,
): Settle {
  const { store, findings } = options;
  if (!findings.hasRoomFor(organizationId)) {
    throw new ProblemError(
      'store-unavailable',
      'Changes of too many organizations wait to be recorded; this one was not made.',
    );
  }
  return async ({ kind }) => {
    if (kind === 'refused') return;
    // That an organization that is unknown here exists, only an accepted change shows.
    const mayBeMadeUp = kind === 'unknown' && gap === 'unknown-key';
    if (mayBeMadeUp && !(await organizationExists(store, base).catch(() => true))) return;
    recordUnmarked(options, organizationId, gap, kind, isUpload);
  };
}
