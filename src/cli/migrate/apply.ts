import { statSync } from 'node:fs';
import { counted, formatNumber } from '../../lib/numbers.ts';
import { recountLegacyPictures } from '../../cutover/verdict/pictures.ts';
import { withdrawVerified } from '../../cutover/verdict/verified.ts';
import { openMediaStore } from '../../media/open.ts';
import { applyRun, type Applied, type ApplyChoice as EngineChoice } from '../../migration/engine/apply.ts';
import type { MigrationContext } from '../../migration/context/context.ts';
import { UsageError } from '../../migration/errors.ts';
import { problems } from '../../migration/context/issues.ts';
import type { Chosen, SourceChoice } from '../../migration/engine/read/choose.ts';
import { isDatabaseUrl } from '../../migration/sources/database-urls.ts';
import type { Copied, CopyOptions } from '../../migration/pictures/copy.ts';
import type { Scope } from '../../migration/sources/scope.ts';
import { figuresOf, type Figures } from './report/figures.ts';
import { listIssues, listWarnings, remedyFor } from './report/issues.ts';
import type { CommandResult } from '../tool.ts';
import { describePlannedPruning, describePruning } from './plan.ts';
import { onStoreClock, withSource, type SessionChoice, type CliEnvironment } from './session.ts';

export interface ApplyChoice extends SourceChoice, SessionChoice, Omit<EngineChoice, 'finalStep'> {
  /** True, or the folder with the files. */
  copyPictures?: true | string | undefined;
  allowPrivateAddresses?: boolean | undefined;
}

/** How an apply ended, for people and machines, with what `--follow` reports of it. */
export interface AppliedResult extends CommandResult {
  applied: Applied;
  sum: Figures;
  /** The records that were refused, or would be, for people. */
  refusals: string;
  isVerifyWithdrawn: boolean;
}

export const verifyWithdrawn =
  'The clean verify on record is withdrawn, since this source is older than it or of unknown age: verify again.';

/** `migrate apply`: writes the source's records, and can be stopped at any time. */
export async function apply(environment: CliEnvironment, choice: ApplyChoice): Promise<AppliedResult> {
  const { copyPictures } = choice;
  if (
    typeof copyPictures === 'string' &&
    statSync(copyPictures, { throwIfNoEntry: false })?.isDirectory() !== true
  ) {
    throw new UsageError(
      `${copyPictures} is not a folder that can be read: give --copy-pictures the folder with the files, or nothing to fetch them from their URLs`,
    );
  }
  let [hasChanged, isVerifyWithdrawn] = [false, false];
  const work = async (chosen: Chosen, context: MigrationContext) => {
    // A source of unknown age counts as older than any verify.
    const { store, prefix, snapshotAt = 0 } = context;
    const beforeChange = async (): Promise<void> => {
      hasChanged = true;
      isVerifyWithdrawn = (await withdrawVerified(store, prefix, snapshotAt)) || isVerifyWithdrawn;
    };
    const folder =
      typeof copyPictures === 'string'
        ? { place: copyPictures, asOf: await onStoreClock(store, { asOf: choice.asOf ?? 0 }) }
        : undefined;
    let pictures: Copied | undefined;
    const applied = await applyRun(
      chosen,
      { ...context, beforeChange },
      {
        ...choice,
        finalStep:
          copyPictures === undefined
            ? undefined
            : async (scope, inner, pacer) => {
                pictures = await copy(environment, { ...choice, folder, pacer }, scope, inner);
              },
      },
    );
    // A verify may have been made in the course of the last change, or of one of an attempt that was broken off.
    if (hasChanged || applied.isResumed) await beforeChange();
    return reportOf(chosen, context, choice, applied, { pictures, isVerifyWithdrawn });
  };
  // Beside a database, which is read as it is now, it is the age of the folder.
  const isOfFolder = typeof copyPictures === 'string' && isDatabaseUrl(choice.source);
  const asOf = isOfFolder ? undefined : choice.asOf;
  try {
    return await withSource('apply', environment, { ...choice, asOf, writes: true }, work);
  } catch (error) {
    if (isVerifyWithdrawn) environment.err.write(`${verifyWithdrawn}\n`);
    throw error;
  }
}

function reportOf(
  chosen: Chosen,
  context: MigrationContext,
  choice: ApplyChoice,
  applied: Applied,
  { pictures, isVerifyWithdrawn }: { pictures: Copied | undefined; isVerifyWithdrawn: boolean },
) {
  const { issues } = context;
  const { kind, assessment, pruned, completedRenames, pendingRenames, whyAllRows } = applied;
  const { pruning } = assessment;
  const { sum, table, json } = figuresOf(assessment.reading, context);
  /** Whether the figures are of what was written, rather than of what would have been. */
  const isWritten = kind === 'applied' || kind === 'interrupted';
  const written = isWritten ? sum.created + sum.updated : 0;
  // If problems are accepted, only those found while writing count.
  const late = sum.conflicts + sum.invalid - assessment.problems;
  const isFine = kind === 'applied' && (chosen.scope.onConflict !== 'abort' || late === 0);
  const writingSeconds = applied.writingMs / 1000;
  const refusals = listIssues(issues, isWritten ? 'Refused:' : 'Problems:', problems);
  return {
    title: titleOf(applied, `run ${chosen.run} from ${chosen.source.name}`),
    parts: [
      table,
      whyAllRows === undefined ? '' : `All rows were read: ${whyAllRows}.`,
      refusals,
      listWarnings(issues),
      pruned === undefined || pruning === undefined
        ? ''
        : describePruning('Removed because the source no longer has them', pruned, pruning),
      kind === 'prune-refused' && pruning !== undefined ? describePlannedPruning(pruning) : '',
      pictures === undefined ? '' : describeCopied(pictures),
      isVerifyWithdrawn ? verifyWithdrawn : '',
    ],
    afterSpeed: isWritten ? `, ${writingSeconds} s of it writing; ${formatNumber(written)} written.` : '.',
    json: {
      state: kind,
      resumed: applied.isResumed,
      full: assessment.isFull,
      ...sum,
      written,
      problems: assessment.problems + late,
      ...(completedRenames > 0 && { completedRenames }),
      ...(pendingRenames > 0 && { pendingRenames }),
      ...(choice.prune === true && {
        pruned: Object.fromEntries(pruned ?? []),
        notPruned: Object.fromEntries(pruning?.spared ?? []),
      }),
      ...(pictures !== undefined && { pictures }),
      ...(isVerifyWithdrawn && { verifyWithdrawn: true }),
      writingSeconds,
      ...json,
    },
    records: sum.read,
    error: isFine ? undefined : errorOf(applied, late, context, choice),
    isInterrupted: kind === 'interrupted',
    applied,
    sum,
    refusals,
    isVerifyWithdrawn,
  };
}

function titleOf({ kind, isResumed, completedRenames }: Applied, run: string): string {
  if (kind === 'interrupted') return `Stopped ${run} cleanly.`;
  if (kind === 'applied') return `Applied ${run}${isResumed ? ', resuming where it had stopped' : ''}.`;
  return completedRenames === 0
    ? `Nothing was written by ${run}; this is what it found.`
    : `Only ${counted(completedRenames, 'pending rename')} completed by ${run}; this is what else it found.`;
}

async function copy(
  { config }: CliEnvironment,
  { folder, pacer, allowPrivateAddresses = false }: ApplyChoice & Pick<CopyOptions, 'folder' | 'pacer'>,
  scope: Scope,
  context: MigrationContext,
): Promise<Copied> {
  // Loaded only if needed: the picture decoder takes time to load.
  const { copyPictures } = await import('../../migration/pictures/copy.ts');
  const media = await openMediaStore(config.mediaUrl, config);
  const options = { media, folder, pacer, allowPrivate: allowPrivateAddresses };
  const copied = await copyPictures(scope, context, options);
  await recountLegacyPictures(context.store, context.prefix);
  return copied;
}

function describeCopied({ copied, failed }: Copied): string {
  return `${counted(copied, 'picture')} copied; not copied, and left with their legacy URLs: ${formatNumber(failed)}.`;
}

function errorOf(
  { kind, assessment, completedRenames, pendingRenames, nextIsFull }: Applied,
  late: number,
  context: MigrationContext,
  { prune }: ApplyChoice,
): string {
  const nothing = completedRenames === 0 ? 'nothing' : 'nothing else';
  if (kind === 'interrupted') {
    return pendingRenames === 0
      ? 'interrupted: run the same command again to resume'
      : `interrupted with ${counted(pendingRenames, 'rename')} pending: run the same command again; it begins with that`;
  }
  if (kind === 'prune-refused') {
    return `${assessment.pruning?.refusal ?? ''}, so ${nothing} was written: check that the source is whole, then allow it with --prune-at-most N`;
  }
  if (kind === 'refused') {
    const again = nextIsFull ? 'run the same command again (it will read everything), ' : '';
    // Where it was given, the next round that reads all rows prunes; that round also knows who is gone.
    const canPrune = !nextIsFull && prune !== true;
    return remedyFor(context, assessment, 'use', `, so ${nothing} was written: ${again}`, canPrune);
  }
  return `${counted(late, 'username')} ${late === 1 ? 'was' : 'were'} taken through the bridge while this ran: see the report, resolve the conflicts, then apply again`;
}
