import { setTimeout as sleep } from 'node:timers/promises';
import { formatInstant } from '../../lib/iso8601.ts';
import { counted, formatNumber, totalOf } from '../../lib/numbers.ts';
import { FinalError } from '../../migration/errors.ts';
import { describeError } from '../command-line.ts';
import { apply, verifyWithdrawn, type AppliedResult, type ApplyChoice } from './apply.ts';
import type { CommandResult } from '../tool.ts';
import type { CliEnvironment } from './session.ts';

export interface FollowChoice extends ApplyChoice {
  follow?: boolean | undefined;
  /** The time from the start of one round to the start of the next, in ms. */
  lag?: number | undefined;
  json?: boolean | undefined;
}

const defaultLag = 10_000;
const defaultFullEvery = 60 * 60_000;
/** A timer set for longer, almost 25 days, would fire at once. */
const longestPause = 2 ** 31 - 1;

/**
 * `migrate apply --follow`: applies what has changed, round after round, until it is stopped. A problem in the first
 * round ends it, as it would end any apply; later ones are reported, and the next round tries again.
 */
export async function follow(environment: CliEnvironment, choice: FollowChoice): Promise<CommandResult> {
  const { signal } = environment;
  const { lag = defaultLag } = choice;
  const report = choice.json === true ? createLines(environment) : createReport(environment, lag);
  /** When the last applied round began, as `performance.now()`: what had changed by then is in Redis. */
  let appliedAt: number | undefined;
  /** Whether the last round that was not interrupted has left something undone. */
  let isBehind = false;
  /** How often it was refused since a round was applied. */
  let refusals = 0;
  for (let round = 1; ; round += 1) {
    const startedAt = performance.now();
    let last: AppliedResult | undefined;
    try {
      const fresh = choice.fresh === true && round === 1;
      // All rows may explain what those that have changed do not, such as a name that a prune makes free.
      const fullEvery = refusals === 1 ? 0 : (choice.fullEvery ?? defaultFullEvery);
      last = await apply(environment, { ...choice, fresh, fullEvery, isNextRound: appliedAt !== undefined });
      const { kind } = last.applied;
      if (kind === 'refused') refusals += 1;
      if (kind === 'applied') [appliedAt, refusals] = [startedAt, 0];
      if (kind !== 'interrupted') isBehind = last.error !== undefined;
      if (kind !== 'interrupted' || appliedAt === undefined) report(round, appliedAt, last);
      else if (last.isVerifyWithdrawn) environment.err.write(`${verifyWithdrawn}\n`);
    } catch (error) {
      if (appliedAt === undefined || error instanceof FinalError) throw error;
      if (!signal.aborted) {
        isBehind = true;
        report(round, appliedAt, describeError(error));
      }
    }
    // Nothing has been applied yet, or renames are pending: the result of this round is shown, with its exit code.
    if (last !== undefined && (appliedAt === undefined || last.applied.pendingRenames > 0))
      return { ...last, json: undefined, text: '' };
    const pause = Math.min(longestPause, Math.max(0, startedAt + lag - performance.now()));
    if (!signal.aborted) await sleep(pause, undefined, { signal }).catch(() => {});
    if (!signal.aborted) continue;
    return { exitCode: isBehind ? 1 : 0, json: undefined, text: 'Stopped.' };
  }
}

/** Shows a round, of which `result` is the outcome, or the reason why it failed. */
type Report = (round: number, appliedAt: number | undefined, result: AppliedResult | string) => void;

/** For --json: each round is a line. */
function createLines({ out }: CliEnvironment): Report {
  return (round, appliedAt, result) => {
    const own =
      typeof result === 'string'
        ? { command: 'apply', ok: false, state: 'failed', error: result }
        : {
            ...(result.json as object),
            refusedSinceFull: result.applied.refusedSinceFull,
            error: result.error,
          };
    const time = formatInstant(Date.now());
    const lagSeconds = appliedAt === undefined ? undefined : lagSince(appliedAt);
    out(`${JSON.stringify({ time, round, lagSeconds, ...own })}\n`);
  };
}

function createReport({ out, err }: CliEnvironment, lag: number): Report {
  let isRefused = false;
  /** What was last listed as refused: rounds that overlap read it again. */
  let listed = '';
  return (round, appliedAt, result) => {
    const behind = appliedAt === undefined ? '' : `; ${lagSince(appliedAt).toFixed(1)} s behind`;
    const start = `${formatInstant(Date.now())} round ${round}`;
    const reportFailure = (error: string): void =>
      void err.write(`${start}: ${error}${behind}; trying again in ${lag / 1000} s\n`);
    if (typeof result === 'string') {
      isRefused = false;
      reportFailure(result);
      return;
    }
    const { error, refusals, applied } = result;
    // Once, rather than in every round until it is corrected.
    const isShown = round === 1 || (error !== undefined && !isRefused);
    const hasOtherRefusals = error === undefined && refusals !== '' && refusals !== listed;
    if (isShown) out(`${result.text}\n\n`);
    else if (hasOtherRefusals) out(`${refusals}\n\n`);
    if (applied.assessment.isFull || refusals !== '') listed = refusals;
    isRefused = error !== undefined;
    if (error === undefined) out(`${start}: ${describeRound(result)}${behind}\n`);
    else if (appliedAt !== undefined) reportFailure(error);
    if (!isShown && result.isVerifyWithdrawn) out(`${start}: ${verifyWithdrawn}\n`);
  };
}

/** How far Redis is behind the source, in s. */
function lagSince(appliedAt: number): number {
  return Math.round(performance.now() - appliedAt) / 1000;
}

function describeRound({ applied, sum }: AppliedResult): string {
  const { pruned, refusedSinceFull } = applied;
  const { isFull } = applied.assessment;
  const { read, created, updated } = sum;
  const refused = isFull ? sum.refused : refusedSinceFull;
  const removed = pruned === undefined ? 0 : totalOf(pruned.values());
  return [
    `${counted(read, 'row')} read${isFull ? ' (all)' : ''}`,
    `${formatNumber(created)} created`,
    `${formatNumber(updated)} updated`,
    ...(removed === 0 ? [] : [`${formatNumber(removed)} removed`]),
    ...(refused === 0
      ? []
      : [`${formatNumber(refused)} refused${isFull ? '' : ' since the last full round'}`]),
  ].join(', ');
}
