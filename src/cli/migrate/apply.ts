import { counted, number } from '../../lib/numbers.ts';
import { recountLegacyPictures } from '../../cutover/verdict/pictures.ts';
import { createMediaStore } from '../../media/open.ts';
import { applyRun, type Applied } from '../../migration/engine/apply.ts';
import type { MigrationContext } from '../../migration/engine/context.ts';
import { createPacer } from '../../migration/engine/write/pacer.ts';
import type { Copied } from '../../migration/pictures/copy.ts';
import type { Scope } from '../../migration/sources/scope.ts';
import {
  describeIgnored,
  describePruning,
  describeSpared,
  figuresOf,
  figuresTable,
  head,
  listProblems,
  listWarnings,
  organizationFigures,
  pace,
  remedyFor,
  sumOf,
  type Figures,
} from './summary.ts';
import type { PlanChoice } from './plan.ts';
import { withSource, type Outcome, type CliEnvironment } from './session.ts';

export interface ApplyChoice extends PlanChoice {
  fresh?: boolean | undefined;
  /** Reads all rows, and prunes, only if that was last done so long ago, in ms. */
  fullEvery?: number | undefined;
  rate?: number | undefined;
  /** True, or the folder where the files lie. */
  copyPictures?: true | string | undefined;
  allowPrivateAddresses?: boolean | undefined;
}

/** How an apply ended, for people and machines, with what `--follow` tells of it. */
export interface AppliedOutcome extends Outcome {
  state: Applied['kind'];
  isFull: boolean;
  pendingRenames: number;
  sum: Figures;
}

/** `migrate apply`: writes the source's records, and can be stopped at any time. */
export async function apply(environment: CliEnvironment, choice: ApplyChoice): Promise<AppliedOutcome> {
  const startedAt = Date.now();
  return await withSource(environment, { ...choice, writes: true }, async (chosen, context) => {
    let pictures: Copied | undefined;
    const applied = await applyRun(chosen, context, {
      ...choice,
      everything: choice.copyPictures !== undefined,
      ...(choice.copyPictures !== undefined && {
        afterwards: async (scope, inner) => {
          pictures = await copy(environment, choice, scope, inner);
        },
      }),
    });
    const { issues } = context;
    const { kind, assessment, tallies, pruning, pruned, pendingRenames } = applied;
    const isWritten = kind === 'applied' || kind === 'interrupted';
    const figures = figuresOf(assessment.reading, tallies, issues);
    const sum = sumOf(figures);
    const written = isWritten ? sum.created + sum.updated : 0;
    // With the problems accepted, only what the writing itself has found is one.
    const late = sum.conflicts + sum.invalid - assessment.problems;
    const isFine = kind === 'applied' && (chosen.scope.onConflict !== 'abort' || late === 0);
    return {
      state: kind,
      isFull: applied.isFull,
      pendingRenames,
      sum,
      exitCode: kind === 'interrupted' ? 130 : isFine ? 0 : 1,
      json: {
        ...head('apply', chosen),
        ok: isFine,
        state: kind,
        resumed: applied.isResumed,
        full: applied.isFull,
        ...sum,
        written,
        problems: assessment.problems + late,
        ...(pendingRenames > 0 && { pendingRenames }),
        ...(choice.prune === true && {
          pruned: Object.fromEntries(pruned ?? []),
          notPruned: Object.fromEntries(pruning?.spared ?? []),
        }),
        ...(pictures !== undefined && { pictures }),
        ...pace(startedAt, sum.read),
        writingSeconds: applied.writingMs / 1000,
        entities: Object.fromEntries(figures),
        organizations: organizationFigures(tallies),
        issues: issues.counts(),
        examples: issues.examples(),
        ignored: chosen.source.ignored,
      },
      text: [
        titleOf(applied, chosen.source.name),
        ...describeIgnored(chosen.source),
        '',
        figuresTable(figures),
        ...listProblems(issues, isWritten ? 'Refused:' : 'Problems:'),
        ...listWarnings(issues),
        ...(pruned === undefined ? [] : describePruned(applied)),
        ...(kind === 'prune-refused' && pruning !== undefined ? describePruning(pruning) : []),
        ...(pictures === undefined ? [] : ['', describeCopied(pictures)]),
        '',
        speed(startedAt, applied, sum.read, written),
      ].join('\n'),
      ...(!isFine && { error: errorOf(applied, late, context) }),
    };
  });
}

function titleOf({ kind, run, isResumed }: Applied, source: string): string {
  const where = `run ${run} from ${source}`;
  if (kind === 'interrupted') return `Stopped ${where}, in good order.`;
  if (kind !== 'applied') return `Nothing was written by ${where}; this is what it found.`;
  return `Applied ${where}${isResumed ? ', resuming where it had stopped' : ''}.`;
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
  const copied = await copyPictures(scope, context, {
    media,
    folder: place === true ? undefined : place,
    allowPrivate: allowPrivateAddresses,
    pacer: createPacer(rate, context.signal),
  });
  await recountLegacyPictures(context.store, context.prefix);
  return copied;
}

function describeCopied({ copied, failed }: Copied): string {
  return `${counted(copied, 'picture')} copied; not to be copied, and left with their URLs: ${number(failed)}.`;
}

function describePruned({ pruned, pruning }: Applied): string[] {
  const counts = [...(pruned ?? [])]
    .filter(([, count]) => count > 0)
    .map(([entity, count]) => `${number(count)} ${entity}`);
  return [
    '',
    `Removed because the source no longer has them: ${counts.length === 0 ? 'nothing' : counts.join(', ')}.`,
    ...describeSpared(pruning?.spared ?? new Map()),
  ];
}

function speed(startedAt: number, { writingMs }: Applied, read: number, written: number): string {
  const { seconds, recordsPerSecond } = pace(startedAt, read);
  const writing = Math.round(writingMs) / 1000;
  return `${counted(read, 'record')} in ${seconds} s (${number(recordsPerSecond)}/s), ${writing} s of it writing; ${number(written)} written.`;
}

function errorOf(
  { kind, assessment, pruning, pendingRenames }: Applied,
  late: number,
  { issues }: MigrationContext,
): string {
  if (kind === 'interrupted') {
    return pendingRenames === 0
      ? 'interrupted: run the same command again to resume'
      : `interrupted with ${counted(pendingRenames, 'rename')} pending: run the same command again; it completes them first`;
  }
  if (kind === 'prune-refused') {
    return `${pruning?.refusal ?? ''}, so nothing was written: check that the source is whole, then allow it with --prune-at-most N`;
  }
  if (kind === 'refused') {
    const or = ', so nothing was written: correct the source, or use';
    return remedyFor(assessment.problems, issues, assessment.reading, or);
  }
  return `taken through the bridge while this ran: ${counted(late, 'username')}; see the report, and apply again once that is settled`;
}
