import { durationText } from '../../lib/days.ts';
import { formatInstant } from '../../lib/iso8601.ts';
import { counted, formatNumber } from '../../lib/numbers.ts';
import { printable, table } from '../../lib/system/terminal.ts';
import { csvLine } from './csv.ts';
import { nameIn, type ReportRow } from './group-usage.ts';
import { minutesOf, shownEnd, type UnmeasuredGap, type UsageReport } from './report.ts';
import { groups } from './usage-query.ts';

interface Column {
  title: string;
  /** Reports by day have no trend, and only those by neither day nor status have callers. */
  part?: 'trend' | 'callers';
  csv: (row: ReportRow) => string | number | null;
  /** The text on a terminal, by default the same, numbers with separators; null for a column that only the CSV has. */
  text?: ((row: ReportRow) => string) | null;
  /** Whether the figure of a row was not measured throughout: then its text ends with `?`. */
  isUnsure?: (row: ReportRow) => boolean;
  numeric?: boolean;
}

/** All columns, in order. */
const allColumns: Column[] = [
  ...groups.map((group): Column => ({
    title: group,
    csv: (row) => nameIn(row, group),
    text: (row) => shortened(nameIn(row, group), 60),
  })),
  {
    title: 'calls',
    csv: ({ calls }) => calls ?? 'not measured',
    isUnsure: ({ calls, measured }) => calls !== null && measured !== 'yes',
    numeric: true,
  },
  {
    title: 'share',
    csv: ({ share }) => rounded(share),
    text: ({ calls, share }) => (calls === null ? '' : percent(share)),
    numeric: true,
  },
  {
    title: 'unattributed',
    csv: ({ unattributed }) => unattributed,
    text: ({ unattributed }) => (unattributed === 0 ? '' : formatNumber(unattributed)),
    numeric: true,
  },
  { title: 'last 7 days', part: 'trend', csv: ({ trend }) => trend?.last7Days ?? null, numeric: true },
  { title: '7 days before', part: 'trend', csv: ({ trend }) => trend?.previous7Days ?? null, numeric: true },
  {
    title: 'trend',
    part: 'trend',
    csv: ({ trend }) => (trend?.change == null ? null : rounded(trend.change)),
    text: ({ trend }) => (trend === null ? '' : trendText(trend)),
    isUnsure: ({ trend }) => trend?.measured === false,
    numeric: true,
  },
  { title: 'first seen', part: 'callers', csv: (row) => row.firstSeen, text: (row) => minute(row.firstSeen) },
  { title: 'last seen', part: 'callers', csv: (row) => row.lastSeen, text: (row) => minute(row.lastSeen) },
  {
    title: 'quiet since',
    part: 'callers',
    csv: ({ quietSince }) => quietSince,
    text: ({ quietSince }) => minute(quietSince).slice(0, 10),
    isUnsure: ({ quietMeasured }) => quietMeasured === false,
  },
  {
    title: 'silence measured',
    part: 'callers',
    csv: ({ quietMeasured }) => (quietMeasured === null ? null : quietMeasured ? 'yes' : 'no'),
    text: null,
  },
  { title: 'measured', csv: ({ measured }) => measured, text: null },
  {
    title: 'keys',
    part: 'callers',
    csv: ({ keyIds, keys }) => keyIds.join(' ') + (keys > keyIds.length ? ' …' : ''),
    text: null,
  },
  {
    title: 'user agents',
    part: 'callers',
    csv: ({ userAgents }) => userAgents.map(({ userAgent }) => userAgent).join(' | '),
    text: ({ userAgents }) => {
      const shown = userAgents.slice(0, 2).map(({ userAgent }) => shortened(userAgent, 30));
      const more = userAgents.length - shown.length;
      return [...shown, ...(more > 0 ? [`${more} more`] : [])].join(', ');
    },
  },
];

function columnsOf(report: UsageReport): Column[] {
  const by = new Set(report.groupBy.split(','));
  if (by.has('client')) by.add('organization');
  const hidden = new Set<string | undefined>(groups.filter((group) => !by.has(group)));
  if (by.has('day')) hidden.add('trend').add('callers');
  if (by.has('status')) hidden.add('callers');
  return allColumns.filter(({ title, part }) => !hidden.has(title) && !hidden.has(part));
}

function plainText(value: string | number | null): string {
  return typeof value === 'number' ? formatNumber(value) : (value ?? '');
}

/** The report's rows as lines of CSV, after a line of titles. */
export function* reportCsv(report: UsageReport): Generator<string, void> {
  const columns = columnsOf(report);
  yield csvLine(columns.map(({ title }) => title.replaceAll(' ', '_')));
  for (const row of report.rows) yield csvLine(columns.map(({ csv }) => csv(row)));
}

/** The report as lines for a terminal: its scope, its rows and its gaps. Empty columns are left out. */
export function reportLines(report: UsageReport): string[] {
  const columns = columnsOf(report)
    .filter(({ text }) => text !== null)
    .map(({ title, csv, text, isUnsure = () => false, numeric }) => ({
      title,
      numeric,
      cells: report.rows.map((row) => (text?.(row) ?? plainText(csv(row))) + (isUnsure(row) ? '?' : '')),
      hasMarks: report.rows.some(isUnsure),
    }))
    .filter(({ cells }) => cells.some((cell) => cell !== ''));
  const rows = table(
    columns.map(({ title }) => title),
    report.rows.map((_, at) => columns.map(({ cells }) => cells[at])),
    columns.flatMap(({ title, numeric }) => (numeric ? [title] : [])),
  ).split('\n');
  const scope =
    report.organization === null ? 'all organizations' : `organization ${printable(report.organization)}`;
  const unattributed =
    report.unattributed === 0 ? '' : `, ${formatNumber(report.unattributed)} of them unattributed`;
  const calls =
    report.measured === 'no' && report.calls === 0
      ? 'not measured'
      : counted(report.calls, 'call') + unattributed;
  return [
    `${report.from} to ${report.to} (UTC), ${scope}: ${calls}`,
    '',
    ...(report.rows.length > 0 ? rows : [report.measured === 'yes' ? 'no calls' : 'no calls were measured']),
    ...(columns.some(({ hasMarks }) => hasMarks) ? ['', '? not measured throughout'] : []),
    ...(report.gaps.length > 0 ? ['', ...gapLines(report.gaps)] : []),
  ];
}

const shownGaps = 10;

/** Gaps as lines for a terminal; only the first ten are listed. */
export function gapLines(gaps: readonly UnmeasuredGap[]): string[] {
  return [
    `not measured: ${durationText(minutesOf(gaps))} in ${counted(gaps.length, 'gap')} (UTC)`,
    ...gaps
      .slice(0, shownGaps)
      .map((gap) => `  ${minute(gap.from)} to ${minute(formatInstant(shownEnd(gap)))}`),
    ...(gaps.length > shownGaps ? [`  and ${gaps.length - shownGaps} more`] : []),
  ];
}

function trendText({ last7Days, previous7Days, change }: NonNullable<ReportRow['trend']>): string {
  if (change === null) return last7Days === 0 ? '' : 'new';
  if (last7Days === previous7Days) return '=';
  const points = Math.round(change * 100);
  return `${points > 0 ? '+' : ''}${points} %`;
}

const rounded = (ratio: number): number => Math.round(ratio * 1000) / 1000;

function percent(share: number): string {
  return share > 0 && share < 0.001 ? '<0.1 %' : `${(share * 100).toFixed(1)} %`;
}

function minute(instant: string | null): string {
  return instant === null ? '' : `${instant.slice(0, 10)} ${instant.slice(11, 16)}`;
}

function shortened(text: string, most: number): string {
  const characters = Array.from(text);
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join('')}…`;
}
