import { counted } from '../../lib/numbers.ts';
import type { RoundState } from '../runs/runs.ts';
import type { Chosen } from './read/choose.ts';
import type { MigrationContext } from '../context/context.ts';
import type { Entity } from '../records/records.ts';
import type { Scope } from '../sources/scope.ts';
import { FinalError, MigrationError, UsageError } from '../errors.ts';
import type { PruneChoice } from './assess.ts';
import type { Pacer } from './write/pacer.ts';

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
  finalStep?: ((scope: Scope, context: MigrationContext, pacer: Pacer) => Promise<void>) | undefined;
}

/**
 * The round that an apply makes: the one before if that was broken off, otherwise a new one. `isDue`: whether it takes the
 * steps that belong to a full round only, such as pruning. `whyAllRows`: why it does not go on from where an earlier round
 * has ended, if there is one and the source could give what has changed since.
 */
export function nextRound(
  chosen: Chosen,
  choice: RoundChoice,
  before: RoundState | undefined,
): { round: RoundState; isResumed: boolean; isDue: boolean; whyAllRows: string | undefined } {
  /** The round before, unless the run starts over. */
  const last = choice.fresh === true ? undefined : before;
  if (choice.isNextRound === true) requireEarlierRound(chosen, before);
  if (last !== undefined) requireSameSource(chosen, last);
  if (choice.isNextRound === true && last !== undefined) requireEntities(chosen, last);
  const { source, scope, fingerprint, selection } = chosen;
  const { onConflict } = scope;
  /** The same, if it was of the same entities and organizations. */
  const same = last?.selection === selection ? last : undefined;
  const isResumed = same !== undefined && same.finishedAt === undefined;
  const whyFull = whyFullRound(choice, last);
  const changedSince = isResumed ? same.since : newSince(choice, last, same?.highWater);
  const since = whyFull === undefined ? changedSince : undefined;
  const round: RoundState = {
    source: source.name,
    fingerprint,
    selection,
    onConflict,
    startedAt: isResumed ? same.startedAt : Date.now(),
    refused: since === undefined ? 0 : (last?.refused ?? 0),
    fullAt: same?.fullAt,
    highWater: same?.highWater,
    since,
    readAll: before?.readAll ?? 0,
    settled: before?.settled ?? 0,
    // What was loaded by another rule may have to be left out by this one.
    loaded: same?.onConflict === onConflict ? same.loaded : undefined,
    entities: {},
  };
  // With fullEvery, a round may read all rows without being a full one: they may have no updatedAt.
  const isDue = choice.fullEvery === undefined ? since === undefined : whyFull !== undefined;
  const needsReason = last !== undefined && !source.isReadWhole && since === undefined;
  const whyAllRows = needsReason ? (whyFull ?? whyNotSince(chosen, choice, last, isResumed)) : undefined;
  return { round, isResumed, isDue, whyAllRows };
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

function whyFullRound(
  { prune, trustSource, fullEvery, finalStep, isNextRound }: RoundChoice,
  last: RoundState | undefined,
): string | undefined {
  if (last !== undefined && last.readAll > last.settled)
    return 'since the last time, a verify has found differences, or an apply was refused a username';
  const step = finalStep === undefined ? undefined : '--copy-pictures';
  const option = prune === true ? '--prune' : trustSource === true ? '--trust-source' : step;
  // The earlier rounds of the run may have been made without it.
  if (option !== undefined && isNextRound !== true) return `${option} needs all of them`;
  return fullEvery !== undefined && isOlder(last?.fullAt ?? 0, fullEvery)
    ? 'it is time for a full round (--full-every)'
    : undefined;
}

/** Why a round that need not be a full one reads all rows. */
function whyNotSince(
  { source, selection }: Chosen,
  { fullEvery }: RoundChoice,
  last: RoundState,
  isResumed: boolean,
): string {
  if (isResumed) return 'the round that was broken off did';
  if (last.selection !== selection) return 'the last round was of other entities or organizations';
  if (fullEvery === undefined && last.refused > 0)
    return `the last round refused ${counted(last.refused, 'record')}`;
  if (source.mayLag === true) return 'what is read may lag behind another database';
  return source.settledUntil > 0
    ? 'the last one found no updatedAt, or the database did not say when its oldest open transaction began'
    : 'the database does not say when its oldest open transaction began';
}

/** From when on a new round that need not be a full one reads what changed, ms since 1970; undefined for all rows. */
function newSince(
  { fullEvery }: RoundChoice,
  last: RoundState | undefined,
  highWater = 0,
): number | undefined {
  // Rows that were refused may be fine by now, however old they are.
  const retriesRefused = fullEvery === undefined && last?.refused !== 0;
  const since = retriesRefused ? 0 : highWater - overlap;
  return since > 0 ? since : undefined;
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
