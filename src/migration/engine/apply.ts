import { replicationIdsOf } from '../../redis/connection/client.ts';
import { findUnregistered, registerOrganization } from '../../redis/organizations.ts';
import { whileLocked, type LockedContext } from '../runs/lock.ts';
import {
  requestFullRound,
  readRun,
  runOrganizations,
  runOrganizationsKey,
  unfinishedLoadsKey,
  type RoundState,
} from '../runs/runs.ts';
import type { Scope } from '../sources/scope.ts';
import { SourceError } from '../sources/source.ts';
import { newSeed } from '../../lib/bounded-memory/seen.ts';
import { inBatches } from '../../lib/collections/batches.ts';
import { assessSource, type Assessment } from './assess.ts';
import type { Chosen } from './read/choose.ts';
import type { MigrationContext } from '../context/context.ts';
import { problems } from '../context/issues.ts';
import { createLoad, type Load } from './load/load.ts';
import { rollBack, takeOver } from './load/unfinished.ts';
import { countPlanned } from './plan.ts';
import { finished, nextRound, type RoundChoice } from './round.ts';
import { createRoundKeeper, type RoundKeeper } from './round-keeper.ts';
import { migrateClaim } from './scripts.ts';
import { createPacer, type Pacer } from './write/pacer.ts';
import { prune, type Pruned } from './write/prune.ts';
import { completeRenames, makeRenames } from './write/renames.ts';
import { writeEntries } from './write/write.ts';

/** To be raised when a load sets other records aside, since one that is resumed must set aside the same. */
const loadFormat = 2;

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
  // Pruning is slow, and so is retrying pictures: not in every round that happens to read all rows.
  const { round, isResumed, isDue, whyAllRows } = nextRound(chosen, choice, last);
  const since = source.isReadWhole ? undefined : round.since;
  const { rate = Number.POSITIVE_INFINITY } = choice;
  // A write of 500 records takes its time; with a rate, fewer at once spread them evenly.
  const size = Math.min(chosen.scope.size, Math.ceil(rate / 4));
  const pacer = createPacer(rate, signal);

  const earlier = await completeEarlierRenames(context);
  const servers = await replicationIdsOf(context.store);
  // A source without a version is read again from its beginning.
  const version = source.version === undefined ? undefined : `${loadFormat}\n${source.version}`;
  round.loaded = await takeOverLoaded(context, round.loaded, version, servers);
  const seed = round.loaded?.seed ?? newSeed();
  const scope: Scope = { ...chosen.scope, since, size, seed };
  const basis = version === undefined ? undefined : { version, servers, seed };
  const keeper = createRoundKeeper(context, round, basis);
  const load = createLoad(context, keeper, pacer, servers, round.loaded?.rows);
  const isPruning = choice.prune === true && isDue;
  const finalStep = isDue ? choice.finalStep : undefined;
  try {
    // Reading, indexing what was loaded and writing; looking for what to prune, and pruning.
    progress.begin(3 + (isPruning ? 2 : 0) + (finalStep === undefined ? 0 : 1));
    const assessment = await assessSource(scope, context, run, { ...choice, prune: isPruning, load });
    const startedAt = performance.now();
    const work: Work = { context, scope, assessment, keeper, load, pacer };
    const refusal = signal.aborted ? undefined : refusalOf(work);
    const outcome =
      refusal === undefined
        ? await write(work, finalStep)
        : await refuse(work, refusal, last, choice.isNextRound === true);
    let refusedSinceFull = 0;
    if (outcome.kind === 'applied') {
      const refused = issues.count(problems);
      const { isFull, reading } = assessment;
      const { newest } = reading;
      const { settledUntil } = source;
      const done = finished(round, { newest, refused, settledUntil, isFull, isDue });
      refusedSinceFull = done.refused;
      await lock.save(done);
    }
    return {
      /** Renames on record that are still to be made. */
      pendingRenames: earlier.pending,
      ...outcome,
      /** Whether it went on with a round that was broken off. */
      isResumed,
      whyAllRows,
      /** Records refused since all rows were read, in this round or before. */
      refusedSinceFull,
      assessment,
      /** Renames that an earlier attempt had left on record, and this one made. */
      completedRenames: earlier.completed,
      /** How long this process wrote, after reading, in ms. */
      writingMs: Math.round(performance.now() - startedAt),
    };
  } finally {
    // Nothing is written once another process may have the run.
    await load.settle();
    await keeper.drain();
  }
}

/** What an apply works with once it has read the source. */
interface Work {
  context: LockedContext;
  scope: Scope;
  assessment: Assessment;
  keeper: RoundKeeper;
  load: Load;
  pacer: Pacer;
}

interface RoundOutcome {
  /** `refused` for problems of records, or `prune-refused` for what a prune would remove: no records were written. */
  kind: 'applied' | 'refused' | 'prune-refused' | 'interrupted';
  pruned?: Pruned | undefined;
  pendingRenames?: number;
  /** Whether the next apply reads all rows, for they may explain a conflict among those that have changed. */
  nextIsFull?: boolean;
}

type Refusal = Extract<RoundOutcome['kind'], 'refused' | 'prune-refused'>;

/** Why nothing may be written, if anything. */
function refusalOf({ scope, assessment }: Work): Refusal | undefined {
  if (scope.onConflict === 'abort' && assessment.problems > 0) return 'refused';
  return assessment.pruning?.refusal === undefined ? undefined : 'prune-refused';
}

/** Rolls back what was loaded, and counts what would have been written. */
async function refuse(
  { context, scope, assessment, keeper }: Work,
  kind: Refusal,
  last: RoundState | undefined,
  isNextRound: boolean,
): Promise<RoundOutcome> {
  await countPlanned(context, assessment);
  await keeper.drain();
  await rollBack(context);
  if (last !== undefined) await context.lock.save({ ...last, loaded: undefined });
  const nextIsFull =
    scope.since !== undefined && !isNextRound && context.issues.count('username-conflict') > 0;
  if (nextIsFull) await requestFullRound(context, context.lock.run);
  return { kind, nextIsFull };
}

/** Puts into service what was loaded, and writes everything else, until it is done or interrupted. */
async function write(
  { context, scope, assessment, keeper, load, pacer }: Work,
  finalStep: RoundChoice['finalStep'],
): Promise<RoundOutcome> {
  const { store, prefix, organizations, lock, signal, progress } = context;
  if (signal.aborted) {
    await load.flush();
    await keeper.saveNow();
    return { kind: 'interrupted' };
  }
  const ids = organizations.all().map(({ id }) => id);
  for (const some of inBatches(ids, { size: 1000 }))
    await store.sadd(runOrganizationsKey(prefix, lock.run), some);
  await claimAll(context);
  // Who takes the run over from now on finds all organizations that this writes into.
  await keeper.begin();
  await load.finish();
  await registerAll(context);
  progress.next();
  const pendingRenames = await makeRenames(context, assessment.renames);
  await writeEntries(context, assessment, keeper, pacer, scope);
  let pruned: Pruned | undefined;
  if (!signal.aborted && assessment.pruning !== undefined) {
    progress.next();
    pruned = await prune(context, assessment.pruning);
  }
  if (!signal.aborted && finalStep !== undefined) {
    progress.next();
    await finalStep(scope, context, pacer);
  }
  if (!signal.aborted) keeper.written(1);
  await keeper.saveNow();
  return { kind: signal.aborted ? 'interrupted' : 'applied', pruned, pendingRenames };
}

/** Registers organizations that the registry has lost, as in a failover of the master that has it. */
async function registerAll({ store, prefix, organizations }: LockedContext): Promise<void> {
  const ids = organizations.all().flatMap(({ id, exists }) => (exists ? [id] : []));
  for (const id of await findUnregistered(store, prefix, ids)) await registerOrganization(store, prefix, id);
}

/** Makes the renames that earlier attempts have left on record, before anything is read. */
async function completeEarlierRenames(context: LockedContext) {
  const ids = await runOrganizations(context, context.lock.run);
  for (const id of ids) await context.organizations.find(id);
  // Before their records are read: an apply that was paused cannot change what was found.
  await claimAll(context);
  return await completeRenames(context, ids);
}

/** Takes over what an earlier attempt has loaded from the same state of the source into these servers, or rolls it back. */
async function takeOverLoaded(
  context: LockedContext,
  loaded: RoundState['loaded'],
  version: string | undefined,
  servers: string,
): Promise<RoundState['loaded']> {
  if (loaded?.version === version && loaded?.servers === servers)
    // Where nothing is left to take over, what was loaded has been rolled back since.
    return (await takeOver(context)).length === 0 ? undefined : loaded;
  await rollBack(context);
  return undefined;
}

/** Claims the organizations encountered so far, as far as they exist. */
async function claimAll({ store, organizations, claim }: LockedContext): Promise<void> {
  for (const some of inBatches(organizations.all(), { size: 1000 })) {
    await Promise.all(some.map(({ base }) => migrateClaim(store, base, claim, 'claim')));
  }
}
