import { InvalidArgumentError, Option, type Command } from 'commander';
import { ledgerDays } from '../../deprecation/ledger/keys.ts';
import { retireCheck, retireCheckLines } from '../../deprecation/reports/retire-check.ts';
import { reportUsage } from '../../deprecation/reports/report.ts';
import { reportCsv, reportLines } from '../../deprecation/reports/report-text.ts';
import { groups, readUsageQuery } from '../../deprecation/reports/usage-query.ts';
import { unlessAborted } from '../../lib/collections/until-aborted.ts';
import { parseInstant } from '../../lib/iso8601.ts';
import { storeTime } from '../../redis/connection/client.ts';
import { parseId, wholeNumber } from '../command-line.ts';
import type { AdminCommand, AdminContext } from './context.ts';
import { done, interrupted, problem, wrongUsage, type CommandResult } from '../tool.ts';

interface UsageOptions {
  from?: string;
  to?: string;
  org?: string;
  group?: string;
  csv?: boolean;
}

/** `admin usage`: reports on calls, and checks whether the API can be retired. */
export function addUsage(program: AdminCommand): void {
  const usage = program
    .command('usage')
    .description('show who calls which operations, how often, and who has gone quiet')
    .option('--from <day>', 'first day, ISO 8601, UTC (default: 29 days before the last day)', checkDay)
    .option('--to <day>', 'last day (default: today)', checkDay)
    .option('--org <organization>', 'only this organization (default: all)', parseId)
    .option('--group <groups>', `one or more of ${groups.join(', ')}, separated by commas`, 'client')
    .addOption(new Option('--csv', 'print CSV, for spreadsheets').conflicts('json'))
    .examples(
      'usage',
      'usage --from 2026-11-01 --to 2026-11-30 --org acme --group operation',
      'usage --group client,operation,status',
      'usage --group day --csv > calls.csv',
      'usage retire-check --days 60',
    )
    .runs(showUsage)
    .hook('preSubcommand', passOptionsOn);
  usage
    .command('retire-check')
    .description(
      'check whether the API can be retired: exit code 0 if no client called and all of that time was measured, else 1',
    )
    .option('--org <organization>', 'only for this organization (default: all)', parseId)
    .option('--days <n>', `how many days back to check, 1 to ${ledgerDays}`, wholeNumber(1, ledgerDays), 30)
    .examples(
      'usage retire-check',
      'usage retire-check --org acme --days 60 --json',
      'usage retire-check --days 90 && echo "nobody calls"',
    )
    .runs(checkRetirement);
  // Last, since subcommands would inherit it.
  usage.allowExcessArguments().hook('preAction', refuseUnknownCommand);
}

/** In place of "too many arguments", which does not say what is wrong with a misspelled subcommand. */
function refuseUnknownCommand(usage: Command, { args: [word] }: Command): void {
  if (word !== undefined) usage.error(`error: unknown command '${word}'`);
}

/**
 * Hands options in front of the subcommand on to it, as in `usage --org acme retire-check`; one that it does not have is
 * refused rather than ignored.
 */
function passOptionsOn(usage: Command, subcommand: Command): void {
  if (subcommand.name() === 'help') return;
  for (const option of usage.options) {
    const name = option.attributeName();
    if (usage.getOptionValueSource(name) !== 'cli') continue;
    if (!subcommand.options.some((own) => own.attributeName() === name)) {
      subcommand.error(`error: ${subcommand.name()} has no option '${option.long}'`);
    }
    subcommand.setOptionValueWithSource(name, usage.getOptionValue(name), 'cli');
  }
}

/** Refuses what is not a day, also an empty text, which a query would take for none. The query parses the text. */
function checkDay(text: string): string {
  if (parseInstant(text).kind === 'ok') return text;
  throw new InvalidArgumentError('It must be an ISO 8601 day such as 2027-01-31.');
}

async function showUsage(
  context: AdminContext,
  { from, to, org, group, csv = false }: UsageOptions,
): Promise<CommandResult> {
  // By the clock of the ledger: what day it is, too.
  const now = await storeTime((await context.open()).store);
  const read = readUsageQuery({ from, to, group, organization: org }, now);
  if (read.kind === 'invalid') return wrongUsage(read.reasons.join('; '));
  const { store, keyPrefix } = await openFor(context, org);
  // A report on very many organizations takes seconds.
  const { signal } = context;
  const report = await unlessAborted(reportUsage(store, keyPrefix, read.query, now, signal), signal);
  if (report === undefined) return interrupted();
  if (csv) for (const line of reportCsv(report)) context.out(line);
  return done(report, csv ? '' : reportLines(report).join('\n'));
}

/** The store, once it is known that it has the organization, if one is given. */
async function openFor(context: AdminContext, org: string | undefined) {
  return org === undefined ? await context.open() : await context.existingOrganization(org);
}

async function checkRetirement(
  context: AdminContext,
  { org, days }: { org?: string; days: number },
): Promise<CommandResult> {
  const { store, keyPrefix } = await openFor(context, org);
  const { signal } = context;
  const question = { organizationId: org, days, now: await storeTime(store), signal };
  const check = await unlessAborted(retireCheck(store, keyPrefix, question), signal);
  if (check === undefined) return interrupted();
  const text = retireCheckLines(check).join('\n');
  if (check.retirable) return done(check, text);
  return problem(`cannot be retired yet: ${check.reasons.join('; ')}`, { json: check, text });
}
