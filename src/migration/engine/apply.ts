import { profileKey } from '../../redis/keys.ts';
import { createTallies, type Outcome, type Tallies } from '../analysis/outcomes.ts';
import type { Decided } from '../analysis/spool.ts';
import type { Entity, RecordOf } from '../records/records.ts';
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
import { assessSource, entriesToWrite, type AssessChoice, type Assessment } from './read/assess.ts';
import type { Chosen } from './read/choose.ts';
import type { MigrationContext } from './context.ts';
import { differencesOf, type Difference } from './compare/differences.ts';
import { createExtras } from './compare/extras.ts';
import { UsageError } from './issues.ts';
import { createLoad, rollBack, stagedOrganizations } from './load/load.ts';
import { organizationsOf } from './organizations.ts';
import { createPacer } from './write/pacer.ts';
import { planPrune, prune, type Pruned, type PrunePlan } from './write/prune.ts';
import { completeRenames, makeRenames } from './write/renames.ts';
import { createRoundKeeper } from './round-keeper.ts';
import { writeEntries } from './write/write.ts';

export interface Plan {
  assessment: Assessment;
  /** What would become of the records. */
  tallies: Tallies;
  pruning: PrunePlan | undefined;
  /** The first few records of each entity that would be changed, with the fields. */
  changes: Change[];
}

export interface Change {
  entity: Entity;
  where: string;
  organizationId: string;
  userId?: string | undefined;
  differences: readonly Difference[];
}

/** Changes of each entity that a plan shows. */
const shownChanges = 5;

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
  context.progress.begin(choice.prune === true ? 2 : 1);
  const { assessment, pruning } = await assess(scope, context, run, choice);
  context.signal.throwIfAborted();
  const { tallies } = assessment;
  const sample = new Map<Entity, Decided[]>();
  for (const entry of entriesToWrite(assessment, tallies)) {
    const { entity } = entry;
    const outcome = await countPlanned(context, tallies, entry);
    const own = sample.get(entity) ?? [];
    if (outcome !== 'created' && own.length < shownChanges) sample.set(entity, [...own, entry]);
  }
  const changes = await Promise.all([...sample].map(([entity, own]) => changesOf(context, entity, own)));
  return { assessment, tallies, pruning, changes: changes.flat() };
}

/**
 * Counts what `apply` would make of an entry, and returns it. A username that somebody else has in Redis does not refuse
 * it: its holder gives the name up earlier in the same run.
 */
async function countPlanned(
  { store, organizations }: MigrationContext,
  tallies: Tallies,
  { entity, record, outcome }: Decided,
): Promise<Outcome> {
  let planned = outcome;
  if (outcome === 'taken') {
    const { organizationId, userId } = record as RecordOf['profiles'];
    const { base } = await organizations.find(organizationId);
    planned = (await store.exists(profileKey(base, userId))) === 1 ? 'updated' : 'created';
  }
  tallies.add(entity, record.organizationId, planned);
  return planned;
}

async function changesOf(
  context: MigrationContext,
  entity: Entity,
  entries: readonly Decided[],
): Promise<Change[]> {
  const differences = await differencesOf(context, entity, entries);
  return entries.map(({ where, record }, position) => {
    const { organizationId, userId } = record as RecordOf['collections'];
    return { entity, where, organizationId, userId, differences: differences[position] ?? [] };
  });
}

async function assess(
  scope: Scope,
  context: MigrationContext,
  run: string,
  {
    prune: isPruning = false,
    pruneAtMost,
    ...loading
  }: PruneChoice & Pick<AssessChoice, 'load' | 'tallies' | 'onAccepted'>,
): Promise<{ assessment: Assessment; pruning: PrunePlan | undefined }> {
  const extras = isPruning ? createExtras(context, scope.entities) : undefined;
  const assessment = await assessSource(scope, context, {
    phase: 'reading',
    extras,
    isPruning,
    ...loading,
  });
  if (extras === undefined || context.signal.aborted) return { assessment, pruning: undefined };
  context.progress.next();
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

export interface ApplyChoice extends PruneChoice {
  fresh?: boolean | undefined;
  rate?: number | undefined;
  /** Reads everything again, however little has changed. */
  everything?: boolean | undefined;
  /** Reads everything, and prunes, only if that was last done so long ago (ms); other rounds read what has changed. */
  fullEvery?: number | undefined;
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

function nextRound(
  { source, scope, run, fingerprint, selection }: Chosen,
  { everything = false, prune: isPruning = false, fullEvery }: ApplyChoice,
  last: RoundState | undefined,
): { round: RoundState; isResumed: boolean } {
  if (last !== undefined && last.fingerprint !== fingerprint) {
    throw new UsageError(
      `run ${run} was begun with another source or mapping (${last.source}): give this one another name with --run, or start over with --fresh`,
    );
  }
  const isSame = last?.selection === selection;
  const isDue =
    fullEvery === undefined ? everything || isPruning : Date.now() - (last?.fullAt ?? 0) >= fullEvery;
  const readsAll = isDue || (last?.readAll ?? 0) > 0;
  if (last !== undefined && isSame && last.finishedAt === undefined) {
    const since = readsAll ? undefined : last.since;
    const isSameRule = last.onConflict === scope.onConflict;
    const loaded = isSameRule ? last.loaded : undefined;
    return {
      round: { ...last, onConflict: scope.onConflict, since, loaded, entities: {} },
      isResumed: true,
    };
  }
  const highWater = isSame ? last?.highWater : undefined;
  // Rows that were refused may be fine by now, however old they are.
  const retriesRefused = fullEvery === undefined && last?.refused !== 0;
  const changedSince = readsAll || retriesRefused ? 0 : (highWater ?? 0) - overlap;
  const since = changedSince > 0 ? changedSince : undefined;
  const round: RoundState = {
    source: source.name,
    fingerprint,
    selection,
    onConflict: scope.onConflict,
    startedAt: Date.now(),
    refused: since === undefined ? 0 : (last?.refused ?? 0),
    fullAt: isSame ? last?.fullAt : undefined,
    highWater,
    since,
    readAll: last?.readAll ?? 0,
    entities: {},
  };
  return { round, isResumed: false };
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
