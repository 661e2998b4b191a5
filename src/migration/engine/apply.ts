import { whileLocked, type LockedContext } from '../runs/lock.ts';
import {
  readAllNext,
  readRun,
  runOrganizations,
  runOrganizationsKey,
  unfinishedLoadsKey,
  type RoundState,
} from '../runs/runs.ts';
import type { Scope } from '../sources/scope.ts';
import { SourceError } from '../sources/source.ts';
import { inBatches } from '../../lib/collections/batches.ts';
import { assessSource } from './read/assess.ts';
import type { Chosen } from './read/choose.ts';
import type { MigrationContext } from './context.ts';
import { FinalError } from '../errors.ts';
import { problems } from './issues.ts';
import { createLoad } from './load/load.ts';
import { rollBack, takeOver } from './load/unfinished.ts';
import { countPlanned } from './plan.ts';
import { finished, nextRound, type RoundChoice } from './round.ts';
import { createRoundKeeper } from './round-keeper.ts';
import { migrateClaim } from './scripts.ts';
import { createPacer } from './write/pacer.ts';
import { prune, type Pruned } from './write/prune.ts';
import { completeRenames, countPendingRenames, makeRenames } from './write/renames.ts';
import { writeEntries } from './write/write.ts';

export type Applied = Awaited<ReturnType<typeof applyRun>>;

export interface ApplyChoice extends RoundChoice {
  rate?: number | undefined;
}

/** Applies a run: resumes a round that was broken off, or begins a new one. One process at a time. */
export async function applyRun(chosen: Chosen, outer: MigrationContext, choice: ApplyChoice) {
  return await whileLocked(outer, chosen.run, async (context) => {
    const last = await readRun(context, chosen.run);
    try {
      const applied = await applyLocked(chosen, context, choice, last);
      if (last === undefined && applied.kind !== 'applied') await forgetUnlessWritten(context);
      return applied;
    } catch (error) {
      const cleanUp = async (): Promise<void> => {
        // No later apply could go on with what was loaded from a source that cannot be read.
        if (error instanceof SourceError) await rollBack(context);
        if (last === undefined) await forgetUnlessWritten(context);
      };
      // Redis may be what has failed; the next apply finds what is left.
      await cleanUp().catch(() => {});
      throw error;
    }
  });
}

/** Removes a run that has neither written records nor begun to. */
async function forgetUnlessWritten({ store, prefix, lock }: LockedContext): Promise<void> {
  const keys = [runOrganizationsKey(prefix, lock.run), unfinishedLoadsKey(prefix, lock.run)];
  const written = await Promise.all(keys.map(async (key) => await store.exists(key)));
  if (!written.includes(1)) await lock.forget();
}

async function applyLocked(
  chosen: Chosen,
  context: LockedContext,
  choice: ApplyChoice,
  last: RoundState | undefined,
) {
  const { run, source } = chosen;
  const { signal, issues, progress, lock } = context;
  if (last === undefined && choice.isNextRound === true) {
    throw new FinalError(
      `run ${run} is gone from Redis, since it was forgotten there or Redis has lost its data: to start it over, run the same command again`,
    );
  }
  const { round, isResumed } = nextRound(chosen, choice, last);
  const isFull = round.since === undefined;
  const size = sizeFor(chosen.scope.size, choice.rate);
  const scope: Scope = { ...chosen.scope, since: round.since, size };
  const keeper = createRoundKeeper(context, round, source.version);
  const pacer = createPacer(choice.rate, signal);

  const earlier = await completeEarlierRenames(context);
  round.loaded = await takeOverLoaded(context, round.loaded, source.version);
  const load = createLoad(context, keeper, round.loaded?.rows ?? 0, pacer);
  const isPruning = choice.prune === true && isFull;
  const afterwards = isFull ? choice.afterwards : undefined;
  try {
    // Reading, indexing what was loaded and writing; looking for what to prune, and pruning.
    progress.begin(3 + (isPruning ? 2 : 0) + (afterwards === undefined ? 0 : 1));
    const assessment = await assessSource(scope, context, run, {
      ...choice,
      prune: isPruning,
      load,
      onAccepted: (rows, entity, share) => keeper.accepted(rows, entity, share, load.flush),
    });
    const { pruning, renames, reading } = assessment;
    const startedAt = Date.now();
    let pendingRenames = earlier.pending;
    let pruned: Pruned | undefined;
    let readsAllNext = false;
    const ended = (kind: 'applied' | 'refused' | 'prune-refused' | 'interrupted') => ({
      /** No records were written where it was refused: for their problems, or for what a prune would remove. */
      kind,
      /** Whether it went on with a round that was broken off. */
      isResumed,
      /** Whether all rows were read, rather than those that have changed. */
      isFull,
      /** Whether the next apply reads all rows, for they may explain a conflict among those that have changed. */
      readsAllNext,
      assessment,
      pruned,
      /** Renames that an earlier attempt had left on record, and this one made. */
      completedRenames: earlier.completed,
      /** Renames on record that are still to be made. */
      pendingRenames,
      /** How long this process wrote, after reading, in ms. */
      writingMs: Date.now() - startedAt,
    });
    if (signal.aborted) {
      await load.flush();
      await keeper.saveNow();
      return ended('interrupted');
    }
    const isRefused = scope.onConflict === 'abort' && assessment.problems > 0;
    if (isRefused || pruning?.refusal !== undefined) {
      await countPlanned(context, assessment);
      await keeper.drain();
      await rollBack(context);
      if (last !== undefined) await lock.save({ ...last, loaded: undefined });
      readsAllNext = !isFull && choice.isNextRound !== true && issues.count('username-conflict') > 0;
      if (readsAllNext) await readAllNext(context, run);
      return ended(isRefused ? 'refused' : 'prune-refused');
    }

    await claimAll(context);
    // Who takes the run over from now on finds all organizations that this writes into.
    await keeper.begin();
    await load.finish();
    progress.next();
    pendingRenames = await makeRenames(context, renames);
    await writeEntries(context, assessment, keeper, pacer, scope);
    if (!signal.aborted && pruning !== undefined) {
      progress.next();
      pruned = await prune(context, pruning);
    }
    if (!signal.aborted && afterwards !== undefined) {
      progress.next();
      await afterwards(scope, context);
    }
    if (!signal.aborted) keeper.written(1);
    await keeper.saveNow();
    if (signal.aborted) return ended('interrupted');
    const { newest } = reading;
    const { settledUntil } = source;
    await lock.save(finished(round, { newest, refused: issues.count(problems), settledUntil }));
    return ended('applied');
  } finally {
    // Nothing is written once another process may have the run.
    await load.settle();
    await keeper.drain();
  }
}

/** Makes the renames that earlier attempts have left on record, before anything is read; how many it made and did not. */
async function completeEarlierRenames(
  context: LockedContext,
): Promise<{ completed: number; pending: number }> {
  const ids = await runOrganizations(context, context.lock.run);
  for (const id of ids) await context.organizations.find(id);
  // Before their records are read: an apply that was paused cannot change what was found.
  await claimAll(context);
  const recorded = await countPendingRenames(context, ids);
  const pending = await completeRenames(context, ids);
  return { completed: recorded - pending, pending };
}

/** Takes over what an earlier attempt has loaded from the same state of the source, or rolls it back. */
async function takeOverLoaded(
  context: LockedContext,
  loaded: RoundState['loaded'],
  version: string | undefined,
): Promise<RoundState['loaded']> {
  if (loaded !== undefined && loaded.version === version)
    // Where nothing is left to take over, what was loaded has been rolled back since.
    return (await takeOver(context)).length === 0 ? undefined : loaded;
  await rollBack(context);
  return undefined;
}

/** A write of 500 records takes its time; with a rate, fewer at once spread them evenly. */
function sizeFor(size: number | undefined, rate: number | undefined): number | undefined {
  return rate === undefined ? size : Math.max(1, Math.min(size ?? 500, Math.ceil(rate / 4)));
}

/** Claims the organizations encountered so far, as far as they exist. The run remembers all of them. */
async function claimAll({ store, prefix, organizations, claim, lock }: LockedContext): Promise<void> {
  for (const some of inBatches(organizations.all(), { size: 1000 })) {
    const ids = some.map(({ id }) => id);
    await store.sadd(runOrganizationsKey(prefix, lock.run), ids);
    await Promise.all(some.map(({ base }) => migrateClaim(store, base, claim, 'claim')));
  }
}
