import { number } from '../../lib/numbers.ts';
import { printable } from '../../lib/system/terminal.ts';
import { shown } from '../../migration/engine/compare/differences.ts';
import { makePlan, type Change } from '../../migration/engine/apply.ts';
import type { SourceChoice } from '../../migration/engine/read/choose.ts';
import {
  describeIgnored,
  describePruning,
  figuresOf,
  figuresTable,
  head,
  listIssues,
  listProblems,
  listWarnings,
  organizationFigures,
  pace,
  remedyFor,
  subjectOf,
  sumOf,
} from './summary.ts';
import { withSource, type Outcome, type SessionChoice, type CliEnvironment } from './session.ts';

export interface PlanChoice extends SourceChoice, SessionChoice {
  prune?: boolean | undefined;
  pruneAtMost?: number | undefined;
}

/** `migrate plan`: reads everything, writes nothing, and shows what an apply would do, and its problems. */
export async function plan(environment: CliEnvironment, choice: PlanChoice): Promise<Outcome> {
  const startedAt = Date.now();
  return await withSource(environment, choice, async (chosen, context) => {
    const { assessment, tallies, pruning, changes } = await makePlan(chosen, context, choice);
    const { issues } = context;
    const { reading, problems } = assessment;
    const figures = figuresOf(reading, tallies, issues);
    const sum = sumOf(figures);
    const isFine = problems === 0 && pruning?.refusal === undefined;
    const error =
      problems > 0
        ? remedyFor(problems, issues, reading, ': correct the source, or apply with')
        : `${pruning?.refusal ?? ''}: check that the source is whole, then allow it with --prune-at-most N`;
    return {
      exitCode: isFine ? 0 : 1,
      json: {
        ...head('plan', chosen),
        ok: isFine,
        ...sum,
        problems,
        ...(pruning !== undefined && { toPrune: Object.fromEntries(pruning.toRemove) }),
        ...pace(startedAt, sum.read),
        entities: Object.fromEntries(figures),
        organizations: organizationFigures(tallies),
        changes,
        issues: issues.counts(),
        examples: issues.examples(),
        ignored: chosen.source.ignored,
      },
      text: [
        `Plan for ${chosen.source.name}; nothing was written.`,
        ...describeIgnored(chosen.source),
        '',
        figuresTable(figures),
        ...listProblems(
          issues,
          'Problems (any of them stops an apply before it writes, unless --on-conflict says otherwise):',
        ),
        ...listWarnings(issues),
        ...listChanges(changes, sum.updated),
        ...(pruning === undefined ? [] : describePruning(pruning)),
        ...listIssues(issues, 'To be removed:', ['to-prune']),
      ].join('\n'),
      ...(!isFine && { error }),
    };
  });
}

function listChanges(changes: readonly Change[], updated: number): string[] {
  if (changes.length === 0) return [];
  const lines = changes.flatMap((change) => [
    `  ${change.entity}  ${printable(`${change.where}${subjectOf(change)}`)}`,
    ...change.differences.map(
      ({ field, redis, source }) => `    ${field}: ${printable(shown(redis))} -> ${printable(shown(source))}`,
    ),
  ]);
  return [
    '',
    `Updates (${number(changes.length)} of ${number(updated)}), from Redis to the source:`,
    ...lines,
  ];
}
