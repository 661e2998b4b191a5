import { exportRecords } from '../../migration/engine/export/export.ts';
import { entityNames, type Entity } from '../../migration/records/records.ts';
import { counted, number } from '../../lib/numbers.ts';
import { table } from '../../lib/system/terminal.ts';
import { listWarnings, pace } from './summary.ts';
import { withSession, type Outcome, type CliEnvironment } from './session.ts';

export interface ExportChoice {
  to: string;
  entities?: readonly Entity[] | undefined;
  org?: string | undefined;
}

/** `migrate export`: what Redis holds, as the records that apply takes. */
export async function exportAll(environment: CliEnvironment, choice: ExportChoice): Promise<Outcome> {
  const startedAt = Date.now();
  return await withSession(environment, {}, async (context) => {
    const entities = choice.entities ?? entityNames;
    const written = await exportRecords(context, choice.to, entities, choice.org);
    let sum = 0;
    for (const count of written.values()) sum += count;
    const speed = pace(startedAt, sum);
    return {
      exitCode: 0,
      json: {
        command: 'export',
        to: choice.to,
        written: sum,
        ...speed,
        entities: Object.fromEntries(written),
        issues: context.issues.counts(),
        examples: context.issues.examples(),
      },
      text: [
        `Exported to ${choice.to}.`,
        '',
        table(
          ['', 'written'],
          [...written].map(([entity, count]) => [entity, number(count)]),
          ['written'],
        ),
        ...listWarnings(context.issues),
        '',
        `${counted(sum, 'record')} in ${speed.seconds} s (${number(speed.recordsPerSecond)}/s).`,
      ].join('\n'),
    };
  });
}
