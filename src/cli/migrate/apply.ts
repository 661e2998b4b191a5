import { applyRun, openChosen, runOrganizationsKey, type Applied } from '../../migration/engine/commands.ts';
import {
  applyFigures,
  figuresTable,
  head,
  listProblems,
  listWarnings,
  pace,
  planFigures,
  recordsWithProblems,
  sumOf,
} from './summary.ts';
import { counted, number } from '../../lib/numbers.ts';
import { createMediaStore } from '../../media/open.ts';
import type { MigrationContext } from '../../migration/engine/context.ts';
import { createPacer } from '../../migration/engine/pacer.ts';
import type { Copied } from '../../migration/pictures/copy.ts';
import type { Scope } from '../../migration/sources/scope.ts';
import { prune, type Pruned } from '../../migration/engine/prune.ts';
import { organizationsOf } from '../../migration/engine/verify.ts';
import { noteIgnored } from './ignored.ts';
import type { PlanChoice } from './plan.ts';
import { withSession, type Outcome, type CliEnvironment } from './session.ts';

export interface ApplyChoice extends PlanChoice {
  fresh?: boolean | undefined;
  rate?: number | undefined;
  prune?: boolean | undefined;
  /** True, or the folder where the files lie. */
  copyPictures?: true | string | undefined;
  allowPrivateAddresses?: boolean | undefined;
}

/** `migrate apply`: brings the source's records in, and can be stopped at any time. */
export async function apply(environment: CliEnvironment, choice: ApplyChoice): Promise<Outcome> {
  const startedAt = Date.now();
  const chosen = await openChosen(choice);
  try {
    // A write of 500 records has its time; with a rate, fewer at once spread it evenly.
    const size =
      choice.rate === undefined
        ? chosen.scope.size
        : Math.max(1, Math.min(choice.batch ?? 500, Math.ceil(choice.rate / 4)));
    const scoped = { ...chosen, scope: { ...chosen.scope, size } };
    return await withSession(environment, choice, async (context) => {
      let pruned: Pruned = { removed: new Map(), spared: new Map() };
      let pictures: Copied | undefined;
      const applied = await applyRun(scoped, context, {
        fresh: choice.fresh,
        rate: choice.rate,
        everything: choice.prune === true || choice.copyPictures !== undefined,
        afterwards: async (scope, inner) => {
          if (choice.prune === true) {
            const past = await inner.store.smembers(runOrganizationsKey(inner.prefix, chosen.run));
            pruned = await prune(scope, inner, await organizationsOf(inner, past, choice.org));
          }
          if (choice.copyPictures !== undefined) {
            pictures = await copy(environment, choice, scope, inner);
          }
        },
      });
      const { issues } = context;
      const isRefused = applied.kind === 'refused';
      const figures = isRefused ? planFigures(applied.plan, issues) : applyFigures(applied, issues);
      const sum = sumOf(figures);
      const written = isRefused ? 0 : sum.created + sum.updated;
      // With the problems accepted, only what the writing itself has found is one.
      const late = sum.conflicts + sum.invalid - applied.plan.problems;
      const isFine = applied.kind === 'applied' && (chosen.scope.onConflict !== 'abort' || late === 0);
      return {
        exitCode: applied.kind === 'interrupted' ? 130 : isFine ? 0 : 1,
        json: {
          ...head('apply', chosen),
          ok: isFine,
          state: applied.kind,
          resumed: applied.isResumed,
          ...sum,
          written,
          problems: applied.plan.problems + late,
          ...(choice.prune === true && {
            pruned: Object.fromEntries(pruned.removed),
            notPruned: Object.fromEntries(pruned.spared),
          }),
          ...(pictures !== undefined && { pictures }),
          ...pace(startedAt, applied.handled),
          writingSeconds: applied.writingMs / 1000,
          entities: Object.fromEntries(figures),
          issues: issues.counts(),
          examples: issues.examples(),
          ignored: chosen.source.ignored,
        },
        text: [
          titleOf(applied, chosen.source.name),
          ...noteIgnored(chosen.source),
          '',
          figuresTable(figures),
          ...listProblems(issues, isRefused ? 'Problems:' : 'Refused:'),
          ...listWarnings(issues),
          ...(choice.prune === true ? ['', ...describePruned(pruned)] : []),
          ...(pictures === undefined ? [] : ['', describeCopied(pictures)]),
          '',
          speed(startedAt, applied, written),
        ].join('\n'),
        ...(!isFine && { error: errorOf(applied, late) }),
      };
    });
  } finally {
    await chosen.source.close();
  }
}

function titleOf({ kind, run, isResumed }: Applied, source: string): string {
  const where = `run ${run} from ${source}`;
  if (kind === 'refused') return `Nothing was written by ${where}; this is what it found.`;
  if (kind === 'interrupted') return `Stopped ${where}, in good order.`;
  return `Applied ${where}${isResumed ? ', going on where it had stopped' : ''}.`;
}

async function copy(
  { config }: CliEnvironment,
  { copyPictures: place, allowPrivateAddresses = false, rate }: ApplyChoice,
  scope: Scope,
  context: MigrationContext,
): Promise<Copied> {
  // It brings the picture decoder along, which takes its time to load.
  const { copyPictures } = await import('../../migration/pictures/copy.ts');
  const media = await createMediaStore(config.mediaUrl, config);
  return await copyPictures(scope, context, {
    media,
    folder: place === true ? undefined : place,
    allowPrivate: allowPrivateAddresses,
    pacer: createPacer(rate, context.signal),
  });
}

function describeCopied({ copied, failed }: Copied): string {
  return `${counted(copied, 'picture')} copied; not to be copied, and left with their URLs: ${number(failed)}.`;
}

function describePruned({ removed, spared }: Pruned): string[] {
  const counts = [...removed]
    .filter(([, count]) => count > 0)
    .map(([entity, count]) => `${number(count)} ${entity}`);
  return [
    `Removed because the source no longer has them: ${counts.length === 0 ? 'nothing' : counts.join(', ')}.`,
    ...[...spared].map(
      ([entity, rows]) =>
        `Not removed: what looks gone from ${entity}, for it may be among what is no record there (${counted(rows, 'row')}); correct that, then prune again.`,
    ),
  ];
}

function speed(startedAt: number, { handled, writingMs }: Applied, written: number): string {
  const { seconds, recordsPerSecond } = pace(startedAt, handled);
  const writing = Math.round(writingMs) / 1000;
  return `${counted(handled, 'record')} in ${seconds} s (${number(recordsPerSecond)}/s), ${writing} s of it writing; ${number(written)} written.`;
}

function errorOf({ kind, plan }: Applied, late: number): string {
  if (kind === 'interrupted')
    return 'interrupted: run the same command again, and it goes on where it stopped';
  if (kind === 'refused') {
    return `${recordsWithProblems(plan.problems)}, so nothing was written: correct the source, or use --on-conflict skip or drop-username`;
  }
  return `taken through the bridge while this ran: ${counted(late, 'username')}; see the report, and apply again once that is settled`;
}
