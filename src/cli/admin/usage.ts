import { Command, InvalidArgumentError, Option } from 'commander';
import { ledgerDays } from '../../deprecation/ledger/keys.ts';
import { retireCheck, retireCheckLines } from '../../deprecation/reports/retire-check.ts';
import { reportUsage } from '../../deprecation/reports/report.ts';
import { reportCsv, reportLines } from '../../deprecation/reports/report-text.ts';
import { groups, readUsageQuery } from '../../deprecation/reports/usage-query.ts';
import { findSettings } from '../../redis/organizations.ts';
import { unknownOrganization, type AdminContext, type Report } from './context.ts';
import { idOption, parseWholeNumber, withExamples } from './options.ts';
import { readTime } from './deprecation/policy-options.ts';
import { printable } from '../../lib/system/terminal.ts';

interface UsageOptions {
  from?: string;
  to?: string;
  org?: string;
  group?: string;
  json?: boolean;
  csv?: boolean;
}

interface CheckOptions {
  org?: string;
  days: number;
  json?: boolean;
}

/** `admin usage`: reports on calls, and checks whether the API can be retired. */
export function usageCommand(context: AdminContext): Command {
  const usage = new Command('usage')
    .description('shows who calls which operations, how often, and who has stopped')
    .enablePositionalOptions()
    .option('--from <day>', 'first day, ISO 8601, UTC (default: 29 days before the last day)', readTime)
    .option('--to <day>', 'last day (default: today)', readTime)
    .addOption(idOption('--org <organization>', 'only this organization (default: all)'))
    .option('--group <groups>', `one or more of ${groups.join(', ')}, separated by commas`, 'client')
    .addOption(new Option('--csv', 'print CSV, for spreadsheets').conflicts('json'))
    .action(async (options: UsageOptions) => {
      context.finish(await showUsage(context, options), options);
    });
  withExamples(usage, [
    'usage',
    'usage --from 2027-01-01 --to 2027-01-31 --org acme --group operation',
    'usage --group client,operation,status',
    'usage --group day --csv > calls.csv',
    'usage retire-check --days 60',
  ]);

  const check = usage
    .command('retire-check')
    .description(
      'checks whether the API can be retired: exit code 0 if no client called and all of that time was measured, else 1',
    )
    .addOption(idOption('--org <organization>', 'only for this organization (default: all)'))
    .option('--days <n>', `how many days back to check, 1 to ${ledgerDays}`, parseDays, 30)
    .action(async (options: CheckOptions) => {
      context.finish(await checkRetirement(context, options), options);
    });
  withExamples(check, [
    'usage retire-check',
    'usage retire-check --org acme --days 60 --json',
    'usage retire-check --days 90 && echo "nobody calls"',
  ]);
  return usage;
}

function parseDays(text: string): number {
  const days = parseWholeNumber(text);
  if (days < 1 || days > ledgerDays) throw new InvalidArgumentError(`It must be 1 to ${ledgerDays}.`);
  return days;
}

async function showUsage(context: AdminContext, options: UsageOptions): Promise<Report> {
  const { from, to, org, group, csv = false } = options;
  const now = Date.now();
  const read = readUsageQuery({ from, to, group, organization: org }, now);
  if (read.kind === 'invalid') return { kind: 'usage', message: printable(read.reasons.join('; ')) };
  const { keyPrefix } = context.config();
  const store = await context.store();
  if (org !== undefined && (await findSettings(store, keyPrefix, org)) === undefined) {
    return unknownOrganization(org);
  }
  const report = await reportUsage(store, keyPrefix, read.query, now);
  if (csv) context.out(reportCsv(report));
  return { kind: 'done', json: report, text: csv ? '' : reportLines(report).join('\n') };
}

async function checkRetirement(context: AdminContext, { org, days }: CheckOptions): Promise<Report> {
  const { keyPrefix } = context.config();
  const store = await context.store();
  const check = await retireCheck(store, keyPrefix, { organizationId: org, days, now: Date.now() });
  const text = retireCheckLines(check).join('\n');
  if (check.retirable) return { kind: 'done', json: check, text };
  return {
    kind: 'problem',
    message: printable(`cannot be retired yet: ${check.reasons.join('; ')}`),
    json: check,
    text,
  };
}
