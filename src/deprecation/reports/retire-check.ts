import type { RedisClient } from '../../redis/connection/client.ts';
import { counted } from '../../lib/numbers.ts';
import { organizationsKey } from '../../redis/keys.ts';
import { printable } from '../../lib/system/terminal.ts';
import { findGaps, readCoverage } from '../ledger/coverage.ts';
import { dayMs, dayOf, durationText, minuteMs } from '../../lib/days.ts';
import { formatInstant } from '../../lib/iso8601.ts';
import { readLedger } from '../ledger/ledger-reader.ts';
import { minutesOf, toGap } from './report.ts';
import { unattributedKey } from '../ledger/tally.ts';
import { clientName } from './group-usage.ts';
import { gapLines } from './report-text.ts';

export type RetireCheck = Awaited<ReturnType<typeof retireCheck>>;

/**
 * Whether the API can be retired (for one organization, or for all) as of `now` (ms): no attributed call in the
 * last `days` days, and no gap in what was measured.
 */
export async function retireCheck(
  store: RedisClient,
  prefix: string,
  { organizationId, days, now }: { organizationId?: string | undefined; days: number; now: number },
) {
  const range = { start: now - days * dayMs, end: now };
  const today = dayOf(now);
  const { keys } = await readLedger(store, prefix, { firstDay: today + 1, lastDay: today }, organizationId);
  const callers = keys
    .filter(({ keyId }) => keyId !== unattributedKey)
    .flatMap(({ organizationId: organization, keyId, client: label, uses }) => {
      const names = { organization, client: clientName(keyId, label), keyId };
      return Array.from(uses, ([operation, { last }]) => ({ ...names, operation, last }));
    })
    .filter(({ last }) => last >= range.start)
    .toSorted((a, b) => b.last - a.last)
    .map(({ last, ...caller }) => ({ ...caller, lastSeen: formatInstant(last) }));
  const gaps = findGaps(await readCoverage(store, prefix, range), range, now).map(toGap);
  const reasons: string[] = [];
  if (
    organizationId !== undefined &&
    (await store.sismember(organizationsKey(prefix), organizationId)) === 0
  ) {
    reasons.push(`there is no organization "${organizationId}": see profile-bridge admin org list`);
  }
  const span = days === 1 ? 'day' : `${days} days`;
  const clients = new Set(callers.map((caller) => `${caller.organization ?? ''}\n${caller.client}`)).size;
  if (clients > 0) reasons.push(`${counted(clients, 'client')} called in the last ${span}`);
  // Gaps are whole minutes, so the first may begin before the range.
  const minutes = Math.min(minutesOf(gaps), days * 1440);
  if (minutes > 0) reasons.push(`${durationText(minutes * minuteMs)} of the last ${span} were not measured`);
  return {
    retirable: reasons.length === 0,
    days,
    organization: organizationId ?? null,
    /** Why not; empty if retirable. */
    reasons,
    /** Who called, the latest first: one entry for each key and operation. */
    callers,
    gaps,
  };
}

/** The result as lines for a terminal. */
export function retireCheckLines(check: RetireCheck): string[] {
  const what = check.organization === null ? 'the API' : `the API for ${check.organization}`;
  if (check.retirable) {
    return [
      `${what} can be retired: no attributed call in ${counted(check.days, 'day')}, measured throughout`,
    ];
  }
  const callers = check.callers.map(
    ({ organization, client, keyId, operation, lastSeen }) =>
      `  ${lastSeen}  ${organization ?? '(unknown)'}  ${client} (${keyId})  ${operation}`,
  );
  return [
    `${what} cannot be retired:`,
    ...check.reasons.map((reason) => `  ${reason}`),
    ...(callers.length > 0 ? ['last calls:', ...callers] : []),
    ...(check.gaps.length > 0 ? gapLines(check.gaps) : []),
  ].map(printable);
}
