import { ENTITIES } from '../records.ts';
import { readRun, runsKey, whoApplies, type RunState } from '../runs.ts';
import { MigrationError } from '../issues.ts';
import { number } from '../../numbers.ts';
import { table } from '../../terminal.ts';
import { withSession, type Outcome, type Surroundings } from './session.ts';

/** Where a run stands. */
type Phase = 'running' | 'interrupted' | 'finished';

/** `migrate status`: where the runs stand, killed or not; of one run, entity by entity. */
export async function status(
  surroundings: Surroundings,
  { run }: { run?: string | undefined },
): Promise<Outcome> {
  return await withSession(surroundings, {}, async ({ store, prefix }) => {
    const names = run === undefined ? (await store.smembers(runsKey(prefix))).sort() : [run];
    const json: unknown[] = [];
    const texts: string[] = [];
    for (const name of names) {
      const [state, owner] = await Promise.all([
        readRun(store, prefix, name),
        whoApplies(store, prefix, name),
      ]);
      if (state === undefined) {
        if (run === undefined) continue;
        const known = (await store.smembers(runsKey(prefix))).sort();
        throw new MigrationError(
          owner === undefined
            ? `there is no run ${name}: ${known.length === 0 ? 'none was begun yet' : `there are ${known.join(', ')}`}`
            : `run ${name} is planning (process ${owner.pid} on ${owner.host}) and has written nothing yet: ask again later`,
        );
      }
      const phase: Phase =
        owner !== undefined ? 'running' : state.finishedAt === undefined ? 'interrupted' : 'finished';
      json.push({ run: name, phase, ...shown(state), ...(owner !== undefined && { owner }) });
      texts.push(describe(name, phase, state, owner));
    }
    return {
      exitCode: 0,
      json:
        run === undefined ? { command: 'status', runs: json } : { command: 'status', ...(json[0] as object) },
      text: texts.length === 0 ? 'No migration was begun yet.' : texts.join('\n\n'),
    };
  });
}

/** Where to go on is nobody else's business. */
function shown({ source, onConflict, startedAt, finishedAt, refused, entities }: RunState) {
  const own = Object.entries(entities).map(([entity, { read, tally, progress, isDone }]) => [
    entity,
    { read, tally, progress, isDone },
  ]);
  return { source, onConflict, startedAt, finishedAt, refused, entities: Object.fromEntries(own) as unknown };
}

function describe(
  run: string,
  phase: Phase,
  { source, startedAt, finishedAt, entities, refused }: RunState,
  owner: { pid: number; host: string } | undefined,
): string {
  const began = new Date(startedAt).toISOString();
  const stand = {
    running: `running (process ${owner?.pid ?? 0} on ${owner?.host ?? ''}), begun ${began}`,
    interrupted: `interrupted, begun ${began}: run the same apply again, and it goes on where it stopped`,
    finished: `finished ${new Date(finishedAt ?? 0).toISOString()}${refused > 0 ? `, ${number(refused)} refused` : ''}`,
  }[phase];
  const rows = ENTITIES.flatMap((entity) => {
    const own = entities[entity];
    if (own === undefined) return [];
    const { created, updated, unchanged, kept, newer, taken } = own.tally;
    return [
      [
        entity,
        `${Math.floor(100 * own.progress)} %`,
        ...[own.read, created, updated, unchanged, kept + newer, taken].map(number),
      ],
    ];
  });
  const figures = ['done', 'read', 'created', 'updated', 'unchanged', 'kept', 'refused'];
  return [
    `Run ${run} from ${source}: ${stand}`,
    ...(rows.length > 0 ? [table(['', ...figures], rows, figures)] : []),
  ].join('\n');
}
