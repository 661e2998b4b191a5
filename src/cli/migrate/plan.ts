import { counted, formatNumber } from '../../lib/numbers.ts';
import { printable } from '../../lib/system/terminal.ts';
import { shown } from '../../migration/engine/compare/differences.ts';
import { makePlan, type Change } from '../../migration/engine/plan.ts';
import { problems } from '../../migration/context/issues.ts';
import type { SourceChoice } from '../../migration/engine/read/choose.ts';
import type { Pruned, PrunePlan } from '../../migration/engine/write/prune.ts';
import { figuresOf } from './report/figures.ts';
import { listIssues, listWarnings, placeOf, remedyFor } from './report/issues.ts';
import type { CommandResult } from '../tool.ts';
import { withSource, type SessionChoice, type CliEnvironment } from './session.ts';

type PlanChoice = SourceChoice & SessionChoice & Parameters<typeof makePlan>[2];

/** `migrate plan`: reads everything, writes nothing, and shows what an apply would do, and its problems. */
export async function plan(environment: CliEnvironment, choice: PlanChoice): Promise<CommandResult> {
  return await withSource('plan', environment, choice, async (chosen, context) => {
    const { assessment, changes } = await makePlan(chosen, context, choice);
    const { issues } = context;
    const { reading, pruning } = assessment;
    const { sum, table, json } = figuresOf(reading, context);
    return {
      title: `Plan for ${chosen.source.name}; nothing was written.`,
      parts: [
        table,
        listIssues(
          issues,
          'Problems (any of them stops an apply before it writes, unless --on-conflict says otherwise):',
          problems,
        ),
        listWarnings(issues),
        listChanges(changes, sum.updated),
        pruning === undefined ? '' : describePlannedPruning(pruning),
        listIssues(issues, 'To be removed:', ['to-prune']),
      ],
      json: {
        ...sum,
        problems: assessment.problems,
        ...(pruning !== undefined && { toPrune: Object.fromEntries(pruning.toRemove) }),
        ...json,
        changes,
      },
      records: sum.read,
      error:
        assessment.problems > 0
          ? remedyFor(context, assessment, 'apply with', ': ')
          : pruning?.refusal &&
            `${pruning.refusal}: check that the source is whole, then allow it with --prune-at-most N`,
    };
  });
}

function listChanges(changes: readonly Change[], updated: number): string {
  if (changes.length === 0) return '';
  const lines = changes.flatMap((change) => [
    `  ${change.entity}  ${placeOf(change)}`,
    ...change.differences.map(
      ({ field, redis, source }) =>
        `    ${field}: ${printable(shown(field, redis))} -> ${printable(shown(field, source))}`,
    ),
  ]);
  const title = `Updates (${formatNumber(changes.length)} of ${formatNumber(updated)}), from Redis to the source:`;
  return [title, ...lines].join('\n');
}

/** What a prune would remove, or has removed, and what it leaves alone though it looks gone. */
export function describePruning(title: string, removed: Pruned, { spared }: PrunePlan): string {
  const counts = [...removed]
    .filter(([, count]) => count > 0)
    .map(([entity, count]) => counted(count, entity === 'denylist' ? 'denied name' : entity.slice(0, -1)));
  const left = [...spared].map(
    ([entity, rows]) =>
      `Not removed: what looks gone from ${entity}, since it may be among its invalid rows (${counted(rows, 'row')}); correct those, then prune again.`,
  );
  return [`${title}: ${counts.length === 0 ? 'nothing' : counts.join(', ')}.`, ...left].join('\n');
}

/** The same of a prune that is yet to be made. */
export function describePlannedPruning(pruning: PrunePlan): string {
  return describePruning('--prune removes what the source no longer has', pruning.toRemove, pruning);
}
