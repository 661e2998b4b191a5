import { countPendingRenames } from '../../migration/engine/write/renames.ts';
import type { MigrationContext } from '../../migration/context/context.ts';
import { entityNames } from '../../migration/records/records.ts';
import { lockOwner } from '../../migration/runs/lock.ts';
import { readRun, requireRun, runNames, type RoundState } from '../../migration/runs/runs.ts';
import { counted, formatNumber } from '../../lib/numbers.ts';
import { table } from '../../lib/system/terminal.ts';
import type { CommandResult } from '../tool.ts';
import { countsOf } from './report/figures.ts';
import { withSession, type CliEnvironment } from './session.ts';

/** The state of a run; `reading` is before its first write, or before the first write of its next round. */
type RunPhase = 'reading' | 'running' | 'interrupted' | 'finished';

/** `migrate status`: the state of all runs, killed or not; of one run, entity by entity. */
export async function status(
  environment: CliEnvironment,
  { run: wanted }: { run?: string | undefined },
): Promise<CommandResult> {
  return await withSession(environment, {}, async (context) => {
    if (wanted !== undefined) await requireRun(context, wanted);
    const names = wanted === undefined ? await runNames(context) : [wanted];
    const runs = await Promise.all(names.map(async (name) => await readStatus(context, name)));
    const json = runs.map(({ name, phase, state, owner, pendingRenames }) => ({
      run: name,
      phase,
      ...(state !== undefined && shown(state)),
      owner,
      ...(pendingRenames > 0 && { pendingRenames }),
    }));
    return {
      exitCode: 0,
      json: wanted === undefined ? { command: 'status', runs: json } : { command: 'status', ...json[0] },
      text: runs.length === 0 ? 'No migration has been started yet.' : runs.map(describe).join('\n\n'),
    };
  });
}

type RunStatus = Awaited<ReturnType<typeof readStatus>>;

async function readStatus(context: MigrationContext, name: string) {
  const [state, owner, pendingRenames] = await Promise.all([
    readRun(context, name),
    lockOwner(context, name),
    countPendingRenames(context, name),
  ]);
  return { name, phase: phaseOf(state, owner !== undefined), state, owner, pendingRenames };
}

function phaseOf(state: RoundState | undefined, isOwned: boolean): RunPhase {
  const isFinished = state?.finishedAt !== undefined;
  if (isOwned) return isFinished || state === undefined ? 'reading' : 'running';
  return isFinished ? 'finished' : 'interrupted';
}

function shown({ source, onConflict, startedAt, finishedAt, refused, entities }: RoundState) {
  const own = Object.entries(entities).map(([entity, figures]) => {
    const progress = doneOf(figures, finishedAt);
    return [entity, { ...figures, progress, isDone: progress === 1 }];
  });
  return { source, onConflict, startedAt, finishedAt, refused, entities: Object.fromEntries(own) as unknown };
}

/** The share of an entity that is done: none of one that has been read and waits for others to be written first. */
function doneOf({ read, progress }: { read: number; progress: number }, finishedAt?: number): number {
  return finishedAt === undefined && read === 0 ? 0 : progress;
}

const figures = ['read', 'created', 'updated', 'unchanged', 'kept', 'refused'] as const;

function describe({ name, phase, state, owner, pendingRenames }: RunStatus): string {
  const by = owner === undefined ? '' : ` (process ${owner.pid} on ${owner.host})`;
  if (state === undefined) {
    const reading = owner === undefined ? 'interrupted while it read the source' : `reading the source${by}`;
    return `Run ${name}: ${reading}; nothing has been written yet`;
  }
  const { source, startedAt, finishedAt, entities, refused } = state;
  const began = new Date(startedAt).toISOString();
  const finished = `finished ${new Date(finishedAt ?? 0).toISOString()}${refused > 0 ? `, ${formatNumber(refused)} refused` : ''}`;
  const description = {
    reading: `reading the source again${by}; the previous round ${finished}`,
    running: `running${by}, started ${began}`,
    interrupted: `interrupted, started ${began}: run the same apply again, and it resumes`,
    finished,
  }[phase];
  const rows = entityNames.flatMap((entity) => {
    const own = entities[entity];
    if (own === undefined) return [];
    const counts = { read: own.read, ...countsOf(own.tally) };
    const done = `${Math.floor(100 * doneOf(own, finishedAt))} %`;
    return [[entity, done, ...figures.map((figure) => formatNumber(counts[figure]))]];
  });
  const pending =
    pendingRenames === 0
      ? ''
      : `\n${counted(pendingRenames, 'rename')} pending: the next apply of this run begins with that`;
  const head = `Run ${name} from ${source}: ${description}${pending}`;
  return rows.length === 0 ? head : `${head}\n${table(['', 'done', ...figures], rows, ['done', ...figures])}`;
}
