import type { ReportRow } from '../../../deprecation/reports/group-usage.ts';
import type { DashboardData } from '../dashboard-data.ts';
import type { Column } from './layout.ts';
import { sparkline } from './sparkline.ts';
import { ago, callsText, percent, trendText } from './text.ts';

/** The columns that several tables share. */
export function usageColumns({ days, now }: DashboardData) {
  return {
    calls: { title: 'Calls', numeric: true, cell: ({ calls }) => callsText(calls) },
    share: { title: 'Share', numeric: true, cell: ({ share }) => percent(share) },
    trend: {
      title: 'Trend',
      // Days that were not measured leave holes.
      cell: ({ daily }) => sparkline(daily.map((calls, i) => (days.rows[i]?.calls == null ? null : calls))),
    },
    weekOnWeek: { title: 'Week on week', numeric: true, cell: ({ trend }) => trendText(trend) },
    lastCall: { title: 'Last call', cell: ({ lastSeen }) => ago(lastSeen, now) },
  } satisfies Record<string, Column<ReportRow>>;
}
