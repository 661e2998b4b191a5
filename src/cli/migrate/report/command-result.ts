import { counted, formatNumber } from '../../../lib/numbers.ts';
import type { Issues } from '../../../migration/context/issues.ts';
import type { Chosen } from '../../../migration/engine/read/choose.ts';
import type { CommandResult } from '../../tool.ts';

/** What a command that reads or writes records has to say. */
export interface Report {
  title: string;
  /** Parts of the text, between blank lines; empty ones are left out. */
  parts: readonly string[];
  json: object;
  /** Records that were read or exported. */
  records: number;
  /** Shows the speed in the text, and behind it this. */
  afterSpeed?: string;
  /** One line with the remedy, unless all is well. */
  error?: string | undefined;
  isInterrupted?: boolean;
}

/** A command's outcome, with what all of them say: the source, the speed, and what there is to know of records. */
export function commandResult<Own extends Report>(
  command: string,
  startedAt: number,
  report: Own,
  issues: Issues,
  chosen?: Chosen,
): Own & CommandResult {
  const { title, parts, json, records, afterSpeed, error, isInterrupted } = report;
  const exact = Math.max(1, performance.now() - startedAt) / 1000;
  const seconds = Math.round(exact * 1000) / 1000;
  const recordsPerSecond = Math.round(records / exact);
  const speed = `${counted(records, 'record')} in ${seconds} s (${formatNumber(recordsPerSecond)}/s)`;
  const ignored = chosen?.source.ignored ?? [];
  const head =
    // Their names may be misspelled.
    ignored.length === 0
      ? title
      : `${title}\nNot read, because they are not named after an entity: ${ignored.join(', ')}`;
  const all = [head, ...parts, afterSpeed === undefined ? '' : `${speed}${afterSpeed}`];
  const failed = isInterrupted === true ? 130 : 1;
  return {
    ...report,
    exitCode: error === undefined ? 0 : failed,
    json: {
      command,
      ...(chosen !== undefined && { run: chosen.run, source: chosen.source.name, ignored }),
      ok: error === undefined,
      ...json,
      seconds,
      recordsPerSecond,
      issues: issues.counts(),
      examples: issues.examples(),
    },
    text: all.filter((part) => part !== '').join('\n\n'),
  };
}
