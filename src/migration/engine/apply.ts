import type { MigrationContext } from './context.ts';
import { groupBy } from '../../lib/group-by.ts';
import { createPacer } from './pacer.ts';
import { addTo, applyDecisions, dryRun, type DryRun } from './dry-run.ts';
import type { Release } from './renames.ts';
import type { Entity } from '../records/records.ts';
import { saveEntity, saveRound, type EntityState, type RunState } from '../runs/runs.ts';
import { chunksOf, type Scope } from '../sources/scope.ts';
import { surveySource, type Survey } from '../analysis/survey.ts';
import { createOrderedPool } from './ordered-pool.ts';
import { normalizedIn } from './organizations.ts';
import { withCurrentIndex } from './current-index.ts';
import { emptyTally, type Notes, type Tally } from './writer.ts';

export interface Plan {
  survey: Survey;
  rehearsal: DryRun;
  /** Records that stop an apply, unless --on-conflict says else. */
  problems: number;
}

/** Reads everything and writes nothing: what is wrong with the source, and what an apply would do. */
export async function makePlan(
  scope: Scope,
  context: MigrationContext,
  onChunk?: Parameters<typeof surveySource>[2],
): Promise<Plan> {
  const survey = await surveySource(scope, context, onChunk);
  const rehearsal = await dryRun(scope, context, survey);
  const { issues } = context;
  return { survey, rehearsal, problems: issues.count('invalid') + issues.count('username-conflict') };
}

export interface ApplyOptions {
  run: string;
  /** The round to go on with; a new one if it is empty. */
  round: RunState;
  /** Records per second at most. */
  rate?: number | undefined;
  /** Where rounds broken off went on to, as `seq` of the cursors. */
  from: ReadonlyMap<Entity, { position: string; seq: number }>;
}

/**
 * Brings in what the plan lets through. After each chunk, once it is in Redis, the run's cursor is saved; so at
 * whatever instant the process dies, the same command goes on from there, and what is repeated is unchanged.
 * Returns whether it came to its end; otherwise the signal stopped it between two chunks.
 */
export async function applyPlan(
  scope: Scope,
  context: MigrationContext,
  { survey, rehearsal }: Plan,
  { run, round, rate, from }: ApplyOptions,
): Promise<'finished' | 'interrupted'> {
  const { store, prefix, signal } = context;
  await saveRound(store, prefix, run, round);
  await releaseNames(context, rehearsal.releases);
  const pacer = createPacer(rate, signal);

  for (const entity of scope.entities) {
    const before = round.entities[entity];
    if (before?.isDone === true) continue;
    const start = from.get(entity);
    const state: EntityState =
      before !== undefined && start !== undefined
        ? before
        : { read: 0, tally: emptyTally(), progress: 0, isDone: false };
    round.entities[entity] = state;
    const decisions = survey.decisions[entity].reader();
    const notes = notesFor(context);
    const save = createSaver(async () => await saveEntity(store, prefix, run, entity, state));
    const window = createOrderedPool<Tally>(context.concurrency, (own) => addTo(state.tally, own));
    if (start !== undefined) await decisions.upTo(start.seq);

    for await (const chunk of chunksOf(scope, entity, start)) {
      if (signal.aborted) break;
      const items = await applyDecisions(chunk, decisions);
      await pacer.wait(items.length);
      if (signal.aborted) break;
      context.progress.advance(`writing ${entity}`, chunk.read, chunk.progress);
      await window.add(context.writer.put(entity, items, 'write', notes), () => {
        state.read += chunk.read;
        state.progress = chunk.progress;
        if (chunk.end !== undefined) state.cursor = chunk.end;
        save.soon();
      });
    }
    await window.drain();
    if (signal.aborted) {
      await save.now();
      return 'interrupted';
    }
    state.isDone = true;
    state.progress = 1;
    await save.now();
  }
  return 'finished';
}

/** What only the writing itself can find: the bridge goes on meanwhile. */
function notesFor({ issues }: MigrationContext): Notes {
  return {
    onTaken: (item, holder) => {
      const { organizationId, userId, username = '' } = item.record;
      const detail = `username ${JSON.stringify(username)} has just been taken by user ${JSON.stringify(holder)}`;
      issues.add({
        entity: 'profiles',
        reason: 'username-conflict',
        where: item.where(),
        detail,
        organizationId,
        userId,
        username,
      });
    },
  };
}

const releasedAtOnce = 500;

/** Frees usernames that change hands between users of the source. */
async function releaseNames(context: MigrationContext, releases: readonly Release[]): Promise<void> {
  const { store, organizations } = context;
  for (const [id, own] of groupBy(releases, ({ organizationId }) => organizationId)) {
    const organization = await organizations.find(id);
    for (let done = 0; done < own.length; done += releasedAtOnce) {
      await withCurrentIndex({ organizations, organization }, async () => {
        const rows = own
          .slice(done, done + releasedAtOnce)
          .map(({ userId, username }) => [userId, username, normalizedIn(organization, username)]);
        return await store.migrateRelease(organization.base, organization.index, JSON.stringify(rows));
      });
    }
  }
}

/** Milliseconds between two savings of a cursor: what a kill makes the next start repeat. */
const saveInterval = 200;

/** Saves now and then, one saving at a time. */
function createSaver(save: () => Promise<void>) {
  let last = Date.now();
  let running: Promise<void> = Promise.resolve();
  let failed: unknown;
  return {
    soon: (): void => {
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
