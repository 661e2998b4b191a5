import { dayMs } from '../../deprecation/ledger/days.ts';
import type { UsageReport } from '../../deprecation/reports/report.ts';
import { unattributedKey } from '../../deprecation/ledger/tally.ts';
import { clientName } from '../../deprecation/reports/usage-groups.ts';
import type { DashboardData } from './findings.ts';

export type ClientRow = UsageReport['rows'][number];

/** So long, in days, nobody has heard of a quiet client: a job that runs once a week is none. */
export const quietDays = 7;

/** The clients still calling and those gone quiet, the latest call first; and the calls of nobody known. */
export function splitClients({ clients, now }: DashboardData): {
  calling: ClientRow[];
  quiet: ClientRow[];
  unattributed: ClientRow[];
} {
  const calling: ClientRow[] = [];
  const quiet: ClientRow[] = [];
  const unattributed: ClientRow[] = [];
  const seen = (row: ClientRow) => Date.parse(row.lastSeen ?? '') || 0;
  for (const row of clients.rows.toSorted((a, b) => seen(b) - seen(a))) {
    if (row.client === clientName(unattributedKey, undefined) && row.keys === 0) unattributed.push(row);
    else if (now - seen(row) < quietDays * dayMs) calling.push(row);
    else quiet.push(row);
  }
  return { calling, quiet, unattributed };
}
