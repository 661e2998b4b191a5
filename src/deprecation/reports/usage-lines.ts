import { counted } from '../../lib/numbers.ts';
import { printable, table } from '../../lib/terminal.ts';
import type { ReportRow, UsageReport } from './report.ts';
import type { Group } from './usage-query.ts';

type Column = [title: string, of: (row: ReportRow) => string];

const organization: Column = ['organization', (row) => row.organization ?? '(unknown)'];

const nameColumns: Record<Group, Column[]> = {
  day: [['day', ({ day }) => day ?? '']],
  organization: [organization],
  client: [['client', ({ client }) => client ?? ''], organization],
  operation: [['operation', ({ operation }) => operation ?? '']],
  status: [['status', ({ status }) => status ?? '']],
};

const callColumns: Column[] = [
  ['calls', ({ calls, measured }) => (calls === null ? 'not measured' : calls + mark(measured === 'yes'))],
  ['share', ({ calls, share }) => (calls === null ? '' : percent(share))],
  ['unattributed', ({ unattributed }) => (unattributed === 0 ? '' : String(unattributed))],
];

const trendColumns: Column[] = [
  ['last 7 days', ({ trend }) => (trend === null ? '' : String(trend.last7Days))],
  ['7 before', ({ trend }) => (trend === null ? '' : String(trend.previous7Days))],
  ['trend', ({ trend }) => (trend === null ? '' : trendText(trend) + mark(trend.measured))],
];

const seenColumns: Column[] = [
  ['first seen', ({ firstSeen }) => minute(firstSeen)],
  ['last seen', ({ lastSeen }) => minute(lastSeen)],
  ['quiet since', ({ quietSince, quietMeasured }) => minute(quietSince).slice(0, 10) + mark(quietMeasured)],
];

const agentsShown = 2;
const agentLength = 30;

const agentsColumn: Column = [
  'user agents',
  ({ userAgents }) => {
    const shown = userAgents.slice(0, agentsShown).map(({ userAgent }) => shortened(userAgent));
    const more = userAgents.length - shown.length;
    return [...shown, ...(more > 0 ? [`${more} more`] : [])].join(', ');
  },
];

const columnsOf: Record<Group, Column[]> = {
  day: [...nameColumns.day, ...callColumns],
  status: [...nameColumns.status, ...callColumns, ...trendColumns],
  organization: [...nameColumns.organization, ...callColumns, ...trendColumns, ...seenColumns, agentsColumn],
  client: [...nameColumns.client, ...callColumns, ...trendColumns, ...seenColumns, agentsColumn],
  operation: [...nameColumns.operation, ...callColumns, ...trendColumns, ...seenColumns, agentsColumn],
};

const numberColumns = ['calls', 'share', 'unattributed', 'last 7 days', '7 before', 'trend'];

/**
 * The report as lines of text for a terminal: what it covers, the rows, and what was not measured. A figure that
 * was not measured throughout ends with `?`. Columns without any value are left out.
 */
export function reportLines(report: UsageReport): string[] {
  const titled = columnsOf[report.groupBy].map(([title, of]) => ({
    title,
    cells: report.rows.map(of),
  }));
  const columns = titled.filter(({ cells }) => cells.some((cell) => cell !== ''));
  const lines = table(
    columns.map(({ title }) => title),
    report.rows.map((_, at) => columns.map(({ cells }) => cells[at])),
    numberColumns,
  ).split('\n');
  const of =
    report.organization === null ? 'all organizations' : `organization ${printable(report.organization)}`;
  const doubtful = titled.some(({ cells }) => cells.some((cell) => cell.endsWith('?')));
  const unattributed = report.unattributed === 0 ? '' : `, ${report.unattributed} of them unattributed`;
  const calls =
    report.measured === 'no' && report.calls === 0
      ? 'not measured'
      : counted(report.calls, 'call') + unattributed;
  return [
    `${report.from} to ${report.to} (UTC), ${of}: ${calls}`,
    '',
    ...(report.rows.length > 0 ? lines : [report.measured === 'yes' ? 'no calls' : 'no calls were measured']),
    ...(doubtful ? ['', '? not measured throughout'] : []),
    ...(report.gaps.length > 0 ? ['', ...gapLines(report.gaps)] : []),
  ];
}

/** Gaps as lines of text; many are cut short. */
export function gapLines(gaps: UsageReport['gaps']): string[] {
  const minutes = gaps.reduce((sum, gap) => sum + gap.minutes, 0);
  const shown = gaps.slice(0, 10).map(({ from, to }) => `  ${minute(from)} to ${minute(to)}`);
  return [
    `not measured: ${lengthOf(minutes)} in ${counted(gaps.length, 'gap')} (UTC)`,
    ...shown,
    ...(gaps.length > shown.length ? [`  and ${gaps.length - shown.length} more`] : []),
  ];
}

/** A length of time as people say it, to the minute below two days, else to the hour. */
export function lengthOf(minutes: number): string {
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  const parts: [number, string][] =
    days >= 2
      ? [
          [days, 'day'],
          [hours % 24, 'hour'],
        ]
      : [
          [hours, 'hour'],
          [minutes % 60, 'minute'],
        ];
  const told = parts.filter(([n]) => n > 0).map(([n, unit]) => counted(n, unit));
  return told.join(' ');
}

function trendText({ last7Days, previous7Days, change }: NonNullable<ReportRow['trend']>): string {
  if (change === null) return last7Days === 0 ? '' : 'new';
  if (last7Days === previous7Days) return '=';
  const points = Math.round(change * 100);
  return `${points > 0 ? '+' : ''}${points} %`;
}

function percent(share: number): string {
  return share > 0 && share < 0.001 ? '<0.1 %' : `${(share * 100).toFixed(1)} %`;
}

/** `true` and null need none. */
function mark(isMeasured: boolean | null): string {
  return isMeasured === false ? '?' : '';
}

function minute(instant: string | null): string {
  return instant === null ? '' : `${instant.slice(0, 10)} ${instant.slice(11, 16)}`;
}

function shortened(text: string): string {
  const characters = Array.from(text);
  return characters.length <= agentLength ? text : `${characters.slice(0, agentLength - 1).join('')}…`;
}
