import { createTallies, type Tallies } from '../analysis/outcomes.ts';
import { lockRun } from '../runs/lock.ts';
import {
  readRun,
  runOrganizations,
  runOrganizationsKey,
  saveRound,
  settleReadAll,
  type RoundState,
} from '../runs/runs.ts';
import type { Scope } from '../sources/scope.ts';
import { entriesToWrite, type Assessment } from './read/assess.ts';
import type { Chosen } from './read/choose.ts';
import type { MigrationContext } from './context.ts';
import { createLoad, rollBack, stagedOrganizations } from './load/load.ts';
import { assess, countPlanned } from './plan.ts';
import { nextRound, type RoundChoice } from './round.ts';
import { createPacer } from './write/pacer.ts';
import { prune, type Pruned, type PrunePlan } from './write/prune.ts';
import { completeRenames, makeRenames } from './write/renames.ts';
import { createRoundKeeper } from './round-keeper.ts';
import { writeEntries } from './write/write.ts';

export interface Applied {
  /** Nothing was written where it was refused: for problems of records, or for what a prune would remove. */
  kind: 'applied' | 'refused' | 'prune-refused' | 'interrupted';
  run: string;
  /** Whether it went on with a round that was broken off. */
  isResumed: boolean;
  /** Whether all rows were read, rather than those that have changed. */
  isFull: boolean;
  assessment: Assessment;
  /** What became of the records; where nothing was written, what would have become of them. */
  tallies: Tallies;
  pruning: PrunePlan | undefined;
  pruned: Pruned | undefined;
  /** Renames on record that are still to be made. */
  pendingRenames: number;
  /** How long this process wrote, after reading, in ms. */
  writingMs: number;
}

export interface ApplyChoice extends RoundChoice {
  fresh?: boolean | undefined;
  rate?: number | undefined;
  /** What a round that reads everything has to do once all records are there, before it counts as finished. */
  afterwards?: ((scope: Scope, context: MigrationContext) => Promise<void>) | undefined;
}

/** Applies a run: resumes a round that was broken off, or begins a new one. One process at a time. */
export async function applyRun(
  chosen: Chosen,
  outer: MigrationContext,
  choice: ApplyChoice,
): Promise<Applied> {
  const { run } = chosen;
  const lock = await lockRun(outer, run);
  const context = { ...outer, signal: AbortSignal.any([outer.signal, lock.lost]) };
  try {
    const applied = await applyLocked(chosen, context, choice);
    lock.lost.throwIfAborted();
    return applied;
  } finally {
    await lock.release().catch(() => {});
  }
}

async function applyLocked(chosen: Chosen, context: MigrationContext, choice: ApplyChoice): Promise<Applied> {
  const { signal, issues, progress } = context;
  const { run, source } = chosen;
  const kept = await readRun(context, run);
  const last = choice.fresh === true ? undefined : kept;
  const { round, isResumed } = nextRound(chosen, choice, last);
  const scope: Scope = { ...chosen.scope, since: round.since };
  const isFull = round.since === undefined;
  let pendingRenames = await completeRenames(context, await runOrganizations(context, run));
  const resumeAt = await prepareLoad(context, chosen, isResumed ? round : undefined);

  const tallies = createTallies();
  const keeper = createRoundKeeper(context, run, round, tallies);
  const pacer = createPacer(choice.rate, signal);
  const load = createLoad(context, {
    run,
    tallies,
    resumeAt,
    pacer,
    onBegin: keeper.begin,
    onDiscard: keeper.discardLoaded,
  });
  const size = sizeFor(scope.size, choice.rate);
  const isPruning = choice.prune === true && isFull;
  const afterwards = isFull ? choice.afterwards : undefined;
  // Reading, indexing what was loaded and writing; looking for what to prune, and pruning.
  progress.begin(3 + (isPruning ? 2 : 0) + (afterwards === undefined ? 0 : 1));
  const { assessment, pruning } = await assess({ ...scope, size }, context, run, {
    ...choice,
    prune: isPruning,
    load,
    tallies,
    onAccepted: (rows, entity, share) =>
      keeper.loaded({ rows, version: source.version ?? '' }, entity, share, load.flush),
  });
  let pruned: Pruned | undefined;
  const startedAt = Date.now();
  const outcome = (kind: Applied['kind']): Applied => ({
    kind,
    run,
    isResumed,
    isFull,
    assessment,
    tallies,
    pruning,
    pruned,
    pendingRenames,
    writingMs: Date.now() - startedAt,
  });
  if (signal.aborted) {
    await load.flush();
    await keeper.now();
    return outcome('interrupted');
  }
  const isRefused = scope.onConflict === 'abort' && assessment.problems > 0;
  if (isRefused || pruning?.refusal !== undefined) {
    for (const entry of entriesToWrite(assessment, tallies)) await countPlanned(context, tallies, entry);
    await keeper.drain();
    await rollBack(context, run);
    await keeper.restore(last);
    return outcome(isRefused ? 'refused' : 'prune-refused');
  }

  await rememberOrganizations(context, run);
  await keeper.begin();
  await load.finish();
  progress.next();
  pendingRenames = await makeRenames(context, assessment.renames);
  await writeEntries(context, assessment, tallies, { size, pacer, onWritten: keeper.written });
  if (!signal.aborted && pruning !== undefined) {
    progress.next();
    pruned = await prune(context, pruning);
  }
  if (!signal.aborted && afterwards !== undefined) {
    progress.next();
    await afterwards(scope, context);
  }
  await keeper.now();
  if (signal.aborted) return outcome('interrupted');
  round.finishedAt = Date.now();
  // What a round that reads what has changed does not see again is still refused.
  round.refused = Math.max(
    isFull ? 0 : round.refused,
    issues.count('invalid') + issues.count('username-conflict'),
  );
  if (isFull) round.fullAt = round.startedAt;
  for (const state of Object.values(round.entities)) state.progress = 1;
  const seen = Math.max(assessment.reading.newest, round.highWater ?? 0);
  round.highWater = Math.min(seen, round.startedAt, source.settledUntil);
  round.loaded = undefined;
  await saveRound(context, run, round);
  if (isFull) await settleReadAll(context, run, kept?.readAll ?? 0);
  return outcome('applied');
}

/**
 * Rolls back what an earlier attempt has begun to load, unless it can be resumed: that is, the source is the same.
 * Returns how many rows of the source are loaded.
 */
async function prepareLoad(
  context: MigrationContext,
  { run, source }: Chosen,
  last: RoundState | undefined,
): Promise<number> {
  if (last?.loaded !== undefined && last.loaded.version === source.version) return last.loaded.rows;
  if ((await stagedOrganizations(context, run)).length > 0) await rollBack(context, run);
  return 0;
}

/** A write of 500 records takes its time; with a rate, fewer at once spread them evenly. */
function sizeFor(size: number | undefined, rate: number | undefined): number | undefined {
  return rate === undefined ? size : Math.max(1, Math.min(size ?? 500, Math.ceil(rate / 4)));
}

async function rememberOrganizations(
  { store, prefix, organizations }: MigrationContext,
  run: string,
): Promise<void> {
  const ids = organizations.all().map(({ id }) => id);
  for (let done = 0; done < ids.length; done += 1000) {
    await store.sadd(runOrganizationsKey(prefix, run), ids.slice(done, done + 1000));
  }
}
