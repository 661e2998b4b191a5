import type { RoundState } from '../runs/runs.ts';
import type { Chosen } from './read/choose.ts';
import type { MigrationContext } from './context.ts';
import type { Entity } from '../records/records.ts';
import type { Scope } from '../sources/scope.ts';
import { FinalError, MigrationError, UsageError } from '../errors.ts';
import type { PruneChoice } from './read/assess.ts';

/** How far back a later round looks before what an earlier one has seen, in ms: clocks and transactions differ. */
const overlap = 5 * 60_000;

export interface RoundChoice extends PruneChoice {
  /** Starts the run over, as if there had been no earlier round. */
  fresh?: boolean | undefined;
  /** Overwrites what is newer in Redis as well, however long ago the source has changed it. */
  trustSource?: boolean | undefined;
  /**
   * Reads everything, and prunes, only if that was last done at least this long ago (ms), or if this is the first round
   * that prunes, trusts the source or has a final step; otherwise reads what changed.
   */
  fullEvery?: number | undefined;
  /** Whether an earlier round had the same choice: fails if the run no longer exists. */
  isNextRound?: boolean | undefined;
  /** What else a round that reads everything does once all records are there, before it counts as finished. */
  finalStep?: ((scope: Scope, context: MigrationContext) => Promise<void>) | undefined;
}

/**
 * The round that an apply makes: the one before if that was broken off, otherwise a new one. `isDue`: whether it takes the
 * steps that belong to a full round only, such as pruning.
 */
export function nextRound(
  chosen: Chosen,
  choice: RoundChoice,
  before: RoundState | undefined,
): { round: RoundState; isResumed: boolean; isDue: boolean } {
  /** The round before, unless the run starts over. */
  const last = choice.fresh === true ? undefined : before;
  if (choice.isNextRound === true) requireEarlierRound(chosen, before);
  if (last !== undefined) requireSameSource(chosen, last);
  if (choice.isNextRound === true && last !== undefined) requireEntities(chosen, last);
  const isFull = isFullRound(choice, last);
  const isResumed =
    last !== undefined && last.selection === chosen.selection && last.finishedAt === undefined;
  const round = isResumed
    ? resumedRound(chosen, isFull, last)
    : newRound(chosen, choice, isFull, { last, before });
  // With fullEvery, a round may read all rows without being a full one: they may have no updatedAt.
  const isDue = choice.fullEvery === undefined ? round.since === undefined : isFull;
  return { round, isResumed, isDue };
}

function requireEarlierRound({ run }: Chosen, before: RoundState | undefined): void {
  if (before !== undefined) return;
  throw new FinalError(
    `run ${run} is gone from Redis, since it was forgotten there or Redis has lost its data: to start it over, run the same command again`,
  );
}

function requireSameSource({ run, fingerprint }: Chosen, last: RoundState): void {
  if (last.fingerprint === fingerprint) return;
  throw new UsageError(
    `run ${run} was begun with another source or mapping (${last.source}): give this one another name with --run, or start over with --fresh`,
  );
}

/** An entity that vanishes while its source is followed is no longer kept up to date, which must not look like it. */
function requireEntities({ source, scope }: Chosen, last: RoundState): void {
  const [known] = JSON.parse(last.selection) as [Entity[]];
  const missing = known.find((entity) => !scope.entities.includes(entity));
  if (missing !== undefined)
    throw new MigrationError(`${source.name} no longer has ${missing}: put them back`);
}

function isFullRound(
  { prune, trustSource, fullEvery, finalStep, isNextRound }: RoundChoice,
  last: RoundState | undefined,
): boolean {
  // One was requested since the last one, as by a verify that found differences.
  if (last !== undefined && last.readAll > last.settled) return true;
  const takesAllRows = prune === true || trustSource === true || finalStep !== undefined;
  // The earlier rounds of the run may have been made without it.
  if (takesAllRows && isNextRound !== true) return true;
  return fullEvery !== undefined && isOlder(last?.fullAt ?? 0, fullEvery);
}

function resumedRound({ scope }: Chosen, isFull: boolean, last: RoundState): RoundState {
  const { onConflict } = scope;
  return {
    ...last,
    onConflict,
    since: isFull ? undefined : last.since,
    // What was loaded by another rule may have to be left out by this one.
    loaded: last.onConflict === onConflict ? last.loaded : undefined,
    entities: {},
  };
}

function newRound(
  { source, scope, fingerprint, selection }: Chosen,
  { fullEvery }: RoundChoice,
  isFull: boolean,
  { last, before }: { last: RoundState | undefined; before: RoundState | undefined },
): RoundState {
  const isSame = last?.selection === selection;
  const highWater = isSame ? last.highWater : undefined;
  // Rows that were refused may be fine by now, however old they are.
  const retriesRefused = fullEvery === undefined && last?.refused !== 0;
  const changedSince = isFull || retriesRefused ? 0 : (highWater ?? 0) - overlap;
  const since = changedSince > 0 ? changedSince : undefined;
  return {
    source: source.name,
    fingerprint,
    selection,
    onConflict: scope.onConflict,
    startedAt: Date.now(),
    refused: since === undefined ? 0 : (last?.refused ?? 0),
    fullAt: isSame ? last.fullAt : undefined,
    highWater,
    since,
    readAll: before?.readAll ?? 0,
    settled: before?.settled ?? 0,
    entities: {},
  };
}

/** Whether a time is at least `age` ms ago, or in the future, as after the clock was set back. */
function isOlder(time: number, age: number): boolean {
  const passed = Date.now() - time;
  return passed >= age || passed < 0;
}

/** The state of a round that has done everything. */
export function finished(
  round: RoundState,
  {
    newest,
    refused,
    settledUntil,
    isFull,
    isDue,
  }: { newest: number; refused: number; settledUntil: number; isFull: boolean; isDue: boolean },
): RoundState {
  return {
    ...round,
    finishedAt: Date.now(),
    // What a round that reads what has changed does not see again is still refused.
    refused: isFull ? refused : Math.max(round.refused, refused),
    // Files, and rows without updatedAt, are read whole by every round, but not pruned by every one.
    fullAt: isDue ? round.startedAt : round.fullAt,
    settled: isFull ? round.readAll : round.settled,
    highWater: Math.min(Math.max(newest, round.highWater ?? 0), round.startedAt, settledUntil),
    loaded: undefined,
  };
}
