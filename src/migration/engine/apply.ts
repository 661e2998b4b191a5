import type { Tallies } from '../analysis/outcomes.ts';
import type { Entity } from '../records/records.ts';
import { lockRun } from '../runs/lock.ts';
import {
  readRun,
  runOrganizations,
  runOrganizationsKey,
  saveEntity,
  saveRound,
  type RunState,
} from '../runs/runs.ts';
import type { Scope } from '../sources/scope.ts';
import { assessSource, entriesToWrite, type Assessment } from './assess.ts';
import type { Chosen } from './choose.ts';
import type { MigrationContext } from './context.ts';
import { createExtras } from './extras.ts';
import { UsageError } from './issues.ts';
import type { Organization } from './organizations.ts';
import { createPacer } from './pacer.ts';
import { planPrune, prune, type Pruned, type PrunePlan } from './prune.ts';
import { completeRenames, makeRenames } from './renames.ts';
import { writeEntries } from './write.ts';

export interface Plan {
  assessment: Assessment;
  /** What would become of the records. */
  tallies: Tallies;
  pruning: PrunePlan | undefined;
}

interface PruneChoice {
  prune?: boolean | undefined;
  pruneAtMost?: number | undefined;
}

/** Reads everything and writes nothing: what is wrong with the source, and what an apply would do. */
export async function makePlan(
  { scope, run }: Chosen,
  context: MigrationContext,
  choice: PruneChoice,
): Promise<Plan> {
  const { assessment, pruning } = await assess(scope, context, run, choice);
  const { tallies } = assessment;
  for await (const { entity, record, outcome } of entriesToWrite(assessment, tallies)) {
    // Whoever still has the username leaves it.
    tallies.add(entity, record.organizationId, outcome === 'taken' ? 'updated' : outcome);
  }
  return { assessment, tallies, pruning };
}

async function assess(
  scope: Scope,
  context: MigrationContext,
  run: string,
  { prune: isPruning = false, pruneAtMost }: PruneChoice,
): Promise<{ assessment: Assessment; pruning: PrunePlan | undefined }> {
  const extras = isPruning ? createExtras(context, scope.entities) : undefined;
  const assessment = await assessSource(scope, context, { phase: 'reading', extras, isPruning });
  if (extras === undefined) return { assessment, pruning: undefined };
  const among = await organizationsOf(context, await runOrganizations(context, run), scope.organizationId);
  return {
    assessment,
    pruning: await planPrune(context, assessment.reading, extras, among, pruneAtMost),
  };
}

/** How far back a later round looks before what an earlier one has seen, in ms: clocks and transactions differ. */
const overlap = 5 * 60_000;

export interface Applied {
  /** Nothing was written where it was refused: for problems of records, or for what a prune would remove. */
  kind: 'applied' | 'refused' | 'prune-refused' | 'interrupted';
  run: string;
  /** Whether it went on with a round that was broken off. */
  isResumed: boolean;
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

export interface ApplyChoice extends PruneChoice {
  fresh?: boolean | undefined;
  rate?: number | undefined;
  /** Reads everything again, however little has changed. */
  everything?: boolean | undefined;
  /** What is left to do once all records are there, before the round counts as finished. */
  afterwards?: ((scope: Scope, context: MigrationContext) => Promise<void>) | undefined;
}

/** Applies a run: resumes a round that was broken off, or begins a new one. One process at a time. */
export async function applyRun(
  chosen: Chosen,
  outer: MigrationContext,
  choice: ApplyChoice,
): Promise<Applied> {
  const { store, prefix } = outer;
  const { run } = chosen;
  const lock = await lockRun(store, prefix, run);
  const context = { ...outer, signal: AbortSignal.any([outer.signal, lock.lost]) };
  try {
    const { round, isResumed } = await nextRound(chosen, context, choice);
    const scope: Scope = { ...chosen.scope, since: round.since };
    await completeRenames(context, await runOrganizations(context, run));
    const { assessment, pruning } = await assess(scope, context, run, choice);
    const { tallies } = assessment;
    let pendingRenames = 0;
    let pruned: Pruned | undefined;
    const startedAt = Date.now();
    const outcome = (kind: Applied['kind']): Applied => ({
      kind,
      run,
      isResumed,
      assessment,
      tallies,
      pruning,
      pruned,
      pendingRenames,
      writingMs: Date.now() - startedAt,
    });
    const isRefused = scope.onConflict === 'abort' && assessment.problems > 0;
    if (isRefused || pruning?.refusal !== undefined) {
      for await (const { entity, record, outcome: would } of entriesToWrite(assessment, tallies)) {
        tallies.add(entity, record.organizationId, would === 'taken' ? 'updated' : would);
      }
      return outcome(isRefused ? 'refused' : 'prune-refused');
    }

    await rememberOrganizations(context, run);
    const saving = await beginRound(context, run, round, assessment);
    pendingRenames = await makeRenames(context, assessment.renames);
    const pacer = createPacer(choice.rate, context.signal);
    await writeEntries(context, assessment, tallies, {
      size: sizeFor(chosen.scope.size, choice.rate),
      pacer,
      onWritten: saving.soon,
    });
    lock.lost.throwIfAborted();
    if (!context.signal.aborted && pruning !== undefined) pruned = await prune(context, pruning);
    if (!context.signal.aborted) await choice.afterwards?.({ ...scope, since: undefined }, context);
    lock.lost.throwIfAborted();
    await saving.now();
    if (context.signal.aborted) return outcome('interrupted');
    round.finishedAt = Date.now();
    round.refused = outer.issues.count('invalid') + outer.issues.count('username-conflict');
    const seen = Math.max(assessment.reading.newest, round.highWater ?? 0);
    round.highWater = Math.min(seen, round.startedAt, chosen.source.settledUntil);
    round.readAll = false;
    await saveRound(store, prefix, run, round);
    return outcome('applied');
  } finally {
    await lock.release().catch(() => {});
  }
}

/** A write of 500 records takes its time; with a rate, fewer at once spread them evenly. */
function sizeFor(size: number | undefined, rate: number | undefined): number | undefined {
  return rate === undefined ? size : Math.max(1, Math.min(size ?? 500, Math.ceil(rate / 4)));
}

async function nextRound(
  { source, scope, run, fingerprint, selection }: Chosen,
  { store, prefix }: MigrationContext,
  { fresh = false, everything = false, prune: isPruning = false }: ApplyChoice,
): Promise<{ round: RunState; isResumed: boolean }> {
  const last = fresh ? undefined : await readRun(store, prefix, run);
  if (last !== undefined && last.fingerprint !== fingerprint) {
    throw new UsageError(
      `run ${run} was begun with another source or mapping (${last.source}): name this one by --run, or begin it anew by --fresh`,
    );
  }
  const isSame = last?.selection === selection;
  // Rows that were refused, or that a verify found to differ, may be older than the last round.
  const readsAll = everything || isPruning || last?.refused !== 0 || last.readAll === true;
  if (last !== undefined && isSame && last.finishedAt === undefined) {
    const since = everything || isPruning || last.readAll === true ? undefined : last.since;
    return { round: { ...last, onConflict: scope.onConflict, since, entities: {} }, isResumed: true };
  }
  const highWater = isSame ? last?.highWater : undefined;
  const round: RunState = {
    source: source.name,
    fingerprint,
    selection,
    onConflict: scope.onConflict,
    startedAt: Date.now(),
    refused: 0,
    highWater,
    since: readsAll || highWater === undefined ? undefined : Math.max(0, highWater - overlap),
    readAll: last?.readAll ?? false,
    entities: {},
  };
  return { round, isResumed: false };
}

/** Milliseconds between two savings of how far a round is. */
const saveInterval = 200;

/** Saves a round that begins to write, and from then on how far it is, now and then, one saving at a time. */
async function beginRound(
  { store, prefix }: MigrationContext,
  run: string,
  round: RunState,
  { reading, tallies }: Assessment,
) {
  const stateOf = (entity: Entity, progress: number) => ({
    read: reading.read.get(entity) ?? 0,
    tally: tallies.of(entity),
    progress,
    isDone: progress === 1,
  });
  for (const entity of reading.read.keys()) round.entities[entity] = stateOf(entity, 0);
  await saveRound(store, prefix, run, round);
  let last = Date.now();
  let share = 0;
  let running: Promise<void> = Promise.resolve();
  let failed: unknown;
  const save = async (): Promise<void> => {
    for (const entity of reading.read.keys())
      await saveEntity(store, prefix, run, entity, (round.entities[entity] = stateOf(entity, share)));
  };
  return {
    soon: (reached: number): void => {
      share = reached;
      if (failed !== undefined) throw failed;
      if (Date.now() - last < saveInterval) return;
      last = Date.now();
      running = running.then(save).catch((error: unknown) => {
        failed = error;
      });
    },
    now: async (): Promise<void> => {
      await running;
      await save();
    },
  };
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

/** The organizations a search for extras is about: those of the source, and those the run has brought in before. */
export async function organizationsOf(
  { organizations }: MigrationContext,
  past: readonly string[],
  only: string | undefined,
): Promise<Map<string, Organization>> {
  if (only === undefined) for (const id of past) await organizations.find(id);
  const all = organizations.all().filter(({ id, exists }) => exists && (only === undefined || id === only));
  return new Map(all.map((organization) => [organization.id, organization]));
}
