import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { applyPlan, makePlan, type Plan } from './apply.ts';
import type { MigrationContext } from './context.ts';
import { UsageError } from './issues.ts';
import { lockRun } from '../runs/lock.ts';
import { readMapping } from '../sources/mapping.ts';
import { entityNames, type Entity } from '../records/records.ts';
import { defaultRunName, readRun, runKey, saveRound, type EntityState, type RunState } from '../runs/runs.ts';
import { openSource } from '../sources/open.ts';
import { SourceError, type Source } from '../sources/source.ts';
import { isDatabaseUrl } from '../sources/databases/urls.ts';
import type { OnConflict, Scope } from '../sources/scope.ts';

/** Such that a name is denied before it may be found in use, and its organization known before all. */
const order: readonly Entity[] = [
  'organizations',
  'api-keys',
  'objects',
  'collections',
  'denylist',
  'profiles',
];

/** What an operator chose of a source. */
export interface SourceChoice {
  source: string;
  mapping?: string | undefined;
  entities?: readonly Entity[] | undefined;
  org?: string | undefined;
  batch?: number | undefined;
  onConflict?: OnConflict | undefined;
  run?: string | undefined;
}

/** A source as chosen, opened; whoever opens it closes it. */
export interface Chosen {
  source: Source;
  scope: Scope;
  run: string;
  fingerprint: string;
  selection: string;
}

/** Opens what was chosen. Mistakes are UsageErrors. */
export async function openChosen(choice: SourceChoice): Promise<Chosen> {
  const source = await open(choice);
  const missing = choice.entities?.find((entity) => !source.entities.includes(entity));
  if (missing !== undefined) {
    await source.close();
    throw new UsageError(
      `${source.name} holds no ${missing}: leave it out of --entities; there are ${source.entities.join(', ')}`,
    );
  }
  const wanted = choice.entities ?? source.entities;
  const entities = order.filter((entity) => wanted.includes(entity));
  const place = isDatabaseUrl(choice.source) ? source.name : resolve(choice.source);
  const mapped = choice.mapping === undefined ? '' : await readFile(choice.mapping, 'utf8');
  return {
    source,
    scope: {
      source,
      entities,
      organizationId: choice.org,
      size: choice.batch,
      onConflict: choice.onConflict ?? 'abort',
    },
    run: choice.run ?? defaultRunName(choice.source, source.name),
    fingerprint: createHash('sha256')
      .update(JSON.stringify([place, mapped]))
      .digest('hex'),
    selection: JSON.stringify([entities, choice.org ?? null]),
  };
}

async function open({ source, mapping }: SourceChoice): Promise<Source> {
  try {
    return await openSource(source, mapping === undefined ? undefined : await readMapping(mapping));
  } catch (error) {
    throw error instanceof SourceError ? new UsageError(error.message) : error;
  }
}

/** How far back a later round looks before what an earlier one has seen, in ms: clocks and transactions differ. */
const overlap = 5 * 60_000;

export interface Applied {
  kind: 'applied' | 'refused' | 'interrupted';
  plan: Plan;
  run: string;
  /** Whether it went on with a round that was broken off. */
  isResumed: boolean;
  entities: Partial<Record<Entity, EntityState>>;
  /** Rows brought in by this very process. */
  handled: number;
  /** How long this process wrote, after planning, in ms. */
  writingMs: number;
}

interface ApplyChoice {
  fresh?: boolean | undefined;
  rate?: number | undefined;
  /** Reads everything again, however little has changed. */
  everything?: boolean | undefined;
  /** What is left to do once all records are there, before the round counts as finished. */
  afterwards?: ((scope: Scope, context: MigrationContext) => Promise<void>) | undefined;
}

/** Applies a run: goes on with what was broken off, or begins a new round. One process at a time. */
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
    const round = await nextRound(chosen, context, choice);
    const isResumed = Object.keys(round.entities).length > 0;
    const scope: Scope = { ...chosen.scope, since: round.since };
    const from = new Map<Entity, { position: string; seq: number }>();
    const plan = await makePlan(scope, context, (entity, { end, endSeq }) => {
      if (end !== undefined && round.entities[entity]?.cursor === end)
        from.set(entity, { position: end, seq: endSeq });
    });
    const entities = round.entities;
    const before = rowsOf(round);
    let writingMs = 0;
    const outcome = (kind: Applied['kind']): Applied => ({
      kind,
      plan,
      run,
      isResumed,
      entities,
      handled: rowsOf(round) - before,
      writingMs,
    });
    if (scope.onConflict === 'abort' && plan.problems > 0) return outcome('refused');

    await rememberOrganizations(context, run);
    const startedAt = Date.now();
    const end = await applyPlan(scope, context, plan, { run, round, rate: choice.rate, from });
    writingMs = Date.now() - startedAt;
    lock.lost.throwIfAborted();
    if (end === 'interrupted') return outcome('interrupted');
    await choice.afterwards?.({ ...scope, since: undefined }, context);
    if (context.signal.aborted) return outcome('interrupted');
    round.finishedAt = Date.now();
    round.refused = outer.issues.count('invalid') + outer.issues.count('username-conflict');
    const newest = Math.max(plan.survey.newest, round.highWater ?? 0);
    round.highWater = Math.min(newest, round.startedAt, chosen.source.settledUntil);
    await saveRound(store, prefix, run, round);
    return outcome('applied');
  } finally {
    await lock.release().catch(() => {});
  }
}

async function nextRound(
  { source, scope, run, fingerprint, selection }: Chosen,
  { store, prefix }: MigrationContext,
  { fresh = false, everything = false }: ApplyChoice,
): Promise<RunState> {
  const last = fresh ? undefined : await readRun(store, prefix, run);
  if (last !== undefined && last.fingerprint !== fingerprint) {
    throw new UsageError(
      `run ${run} was begun with another source or mapping (${last.source}): name this one by --run, or begin it anew by --fresh`,
    );
  }
  const isSame = last?.selection === selection;
  if (last !== undefined && isSame && last.finishedAt === undefined) {
    return { ...last, onConflict: scope.onConflict };
  }
  // Rows refused before may be fine now, however old they are; so after refusals everything is looked at again.
  const since =
    last !== undefined && isSame && last.refused === 0 && !everything && last.highWater !== undefined
      ? Math.max(0, last.highWater - overlap)
      : undefined;
  return {
    source: source.name,
    fingerprint,
    selection,
    onConflict: scope.onConflict,
    startedAt: Date.now(),
    refused: 0,
    highWater: isSame ? last?.highWater : undefined,
    since,
    entities: {},
  };
}

function rowsOf({ entities }: RunState): number {
  let sum = 0;
  for (const entity of entityNames) sum += entities[entity]?.read ?? 0;
  return sum;
}

/** The organizations whose records this run has brought in: those in which it later may miss something. */
export function runOrganizationsKey(prefix: string, run: string): string {
  return `${runKey(prefix, run)}:organizations`;
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
