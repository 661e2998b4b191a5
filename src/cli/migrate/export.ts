import { exportRecords } from '../../migration/engine/export/export.ts';
import { problems } from '../../migration/context/issues.ts';
import { entityNames, type Entity } from '../../migration/records/records.ts';
import { counted, formatNumber, totalOf } from '../../lib/numbers.ts';
import { table } from '../../lib/system/terminal.ts';
import { listIssues, listWarnings } from './report/issues.ts';
import { commandResult } from './report/command-result.ts';
import type { CommandResult } from '../tool.ts';
import { withSession, type CliEnvironment } from './session.ts';

export interface ExportChoice {
  to: string;
  entities?: readonly Entity[] | undefined;
  org?: string | undefined;
}

/** `migrate export`: what Redis holds, as the records that apply takes. */
export async function exportAll(environment: CliEnvironment, choice: ExportChoice): Promise<CommandResult> {
  const startedAt = performance.now();
  const { to, entities = entityNames, org } = choice;
  return await withSession(environment, {}, async (context) => {
    const written = await exportRecords(context, to, entities, org);
    const { issues } = context;
    const sum = totalOf(written.values());
    const conflicts = issues.count(problems);
    const rows = [...written].map(([entity, count]) => [entity, formatNumber(count)]);
    const report = {
      title: `Exported to ${to}.`,
      parts: [
        table(['', 'written'], rows, ['written']),
        listIssues(issues, 'Problems:', problems),
        listWarnings(issues),
      ],
      afterSpeed: '.',
      json: { to, written: sum, entities: Object.fromEntries(written) },
      records: sum,
      error:
        conflicts === 0
          ? undefined
          : `${counted(conflicts, 'record')} ${conflicts === 1 ? 'has' : 'have'} a username that another record has, too, since it changed hands meanwhile: export again; if it says the same then, run profile-bridge admin fsck`,
    };
    return commandResult('export', startedAt, report, issues);
  });
}
