import { makePlan } from '../../migration/engine/apply.ts';
import { openChosen, type SourceChoice } from '../../migration/engine/commands.ts';
import {
  figuresTable,
  head,
  listProblems,
  listWarnings,
  pace,
  planFigures,
  recordsWithProblems,
  sumOf,
} from './summary.ts';
import { noteIgnored } from './ignored.ts';
import { withSession, type Outcome, type SessionChoice, type CliEnvironment } from './session.ts';

export type PlanChoice = SourceChoice & SessionChoice;

/** `migrate plan`: reads everything, writes nothing, and tells what an apply would meet and do. */
export async function plan(environment: CliEnvironment, choice: PlanChoice): Promise<Outcome> {
  const startedAt = Date.now();
  const chosen = await openChosen(choice);
  try {
    return await withSession(environment, choice, async (context) => {
      const made = await makePlan(chosen.scope, context);
      const { issues } = context;
      const figures = planFigures(made, issues);
      const sum = sumOf(figures);
      const isFine = made.problems === 0;
      return {
        exitCode: isFine ? 0 : 1,
        json: {
          ...head('plan', chosen),
          ok: isFine,
          ...sum,
          problems: made.problems,
          ...pace(startedAt, sum.read),
          entities: Object.fromEntries(figures),
          issues: issues.counts(),
          examples: issues.examples(),
          ignored: chosen.source.ignored,
        },
        text: [
          `Plan for ${chosen.source.name}; nothing was written.`,
          ...noteIgnored(chosen.source),
          '',
          figuresTable(figures),
          ...listProblems(
            issues,
            'Problems (any of them stops an apply before it writes, unless --on-conflict says otherwise):',
          ),
          ...listWarnings(issues),
        ].join('\n'),
        ...(!isFine && {
          error: `${recordsWithProblems(made.problems)}: correct the source, or apply with --on-conflict skip or drop-username`,
        }),
      };
    });
  } finally {
    await chosen.source.close();
  }
}
