import type { RedisClient } from '../../redis/connection/client.ts';
import { counted, totalOf } from '../../lib/numbers.ts';
import { printable } from '../../lib/system/terminal.ts';
import { findGaps, readCoverage, untilWritten } from '../ledger/coverage.ts';
import { dayMs, dayOf, durationText } from '../../lib/days.ts';
import { formatInstant } from '../../lib/iso8601.ts';
import { callsOn, callsServed, lastUse, lastUses, readLedger } from '../ledger/ledger-reader.ts';
import { minutesOf, toGap } from './report.ts';
import { isAttributed, unattributedKey, uncheckedKey } from '../ledger/tally.ts';
import { clientName } from './group-usage.ts';
import { gapLines } from './report-text.ts';

export type RetireCheck = Awaited<ReturnType<typeof retireCheck>>;

interface RetireQuestion {
  organizationId?: string | undefined;
  days: number;
  now: number;
  signal?: AbortSignal;
}

/**
 * Whether the API can be retired (for one organization, or for all) as of `now` (ms): no attributed call in the
 * last `days` days, none with a key that was not checked, as with a 410, none that the legacy service served with
 * an API key that is unknown here, and no gap in what was measured. It waits, for 10 s at most, until running instances
 * have written what they have counted up to now.
 */
export async function retireCheck(store: RedisClient, prefix: string, question: RetireQuestion) {
  const { organizationId, days } = question;
  const found = await examinePeriod(store, prefix, question);
  const reasons = [...reasonsAgainst(found, days)];
  return {
    retirable: reasons.length === 0,
    days,
    organization: organizationId ?? null,
    /** Why not; empty if retirable. */
    reasons,
    ...found,
  };
}

type Found = Awaited<ReturnType<typeof examinePeriod>>;

/** The calls of the period, and the gaps in what was measured. */
async function examinePeriod(
  store: RedisClient,
  prefix: string,
  { organizationId, days, now, signal }: RetireQuestion,
) {
  const range = { start: now - days * dayMs, end: now };
  await untilWritten(store, prefix, now, signal);
  const daysTouched = { firstDay: dayOf(range.start), lastDay: dayOf(now) };
  const keys = await readLedger(store, prefix, daysTouched, {
    organizationId,
    isLastDayEnough: isAttributed,
    signal,
    most: Infinity,
  });
  const callers = keys
    .filter(({ keyId }) => isAttributed(keyId))
    .flatMap((key) => {
      const { organizationId: organization, keyId } = key;
      const names = { organization, client: clientName(keyId, key.client), keyId };
      return Array.from(lastUses(key, now), ([operation, last]) => ({ ...names, operation, last }));
    })
    .filter(({ last }) => last >= range.start)
    .toSorted((a, b) => b.last - a.last)
    .map(({ last, ...caller }) => ({ ...caller, lastSeen: formatInstant(last) }));
  const claimedBy = (id: string) =>
    keys
      .filter((key) => key.keyId === id && lastUse(key, now) >= range.start)
      .map((key) => ({
        organization: key.organizationId,
        /** On the UTC days that the period touches. */
        calls: totalOf(key.series.map(({ daily }) => callsOn(daily))),
        ...(id === unattributedKey && { served: callsServed(key) }),
        lastSeen: formatInstant(lastUse(key, now)),
      }));
  return {
    /** Who called, the latest first: one entry for each key and operation. */
    callers,
    /** Calls with a key that was not checked, by the organization they claimed. */
    unchecked: claimedBy(uncheckedKey),
    /** Calls without a valid key, by the organization they claimed: a reason against it if they were `served`. */
    unattributed: claimedBy(unattributedKey),
    gaps: findGaps(await readCoverage(store, prefix, range), range, now, 0).map(toGap),
  };
}

function* reasonsAgainst(
  { callers, unchecked, unattributed, gaps }: Found,
  days: number,
): Generator<string, void> {
  const span = days === 1 ? 'day' : `${days} days`;
  // A label may look like the id of another key.
  const clientOf = ({ organization, client, keyId }: (typeof callers)[number]): string =>
    JSON.stringify([organization, client, client !== clientName(keyId)]);
  const clients = new Set(callers.map(clientOf)).size;
  if (clients > 0) yield `${counted(clients, 'client')} called in the last ${span}`;
  if (unchecked.length > 0) {
    const calls = totalOf(unchecked.map((one) => one.calls));
    yield `${counted(calls, 'call')} in the last ${span} came with a key that was not checked (if they got 410, have keys checked first from now on: profile-bridge admin deprecation set --exempt-key KEYID --until TIME, for any key)`;
  }
  const served = totalOf(unattributed.map((one) => one.served ?? 0));
  if (served > 0) {
    const were = served === 1 ? 'was' : 'were';
    yield `${counted(served, 'call')} in the last ${span}, with an API key that is unknown here, ${were} served by the legacy service`;
  }
  // Gaps are whole minutes, so the first may begin before the range.
  const minutes = Math.min(minutesOf(gaps), days * 1440);
  if (minutes === days * 1440) yield `nothing was measured in the last ${span}`;
  else if (minutes > 0) yield `nothing was measured for ${durationText(minutes)} of the last ${span}`;
}

/** Calls of a claimed organization; `served`: how many of them the legacy service answered with success. */
type Claimed = RetireCheck['unattributed'][number];

/** The result as lines for a terminal. */
export function retireCheckLines(check: RetireCheck): string[] {
  const what = check.organization === null ? 'the API' : `the API for ${check.organization}`;
  const verdict = check.retirable
    ? [`${what} can be retired: no attributed call in ${counted(check.days, 'day')}, measured throughout`]
    : [`${what} cannot be retired:`, ...check.reasons.map((reason) => `  ${reason}`)];
  const callers = check.callers.map(
    ({ organization, client, keyId, operation, lastSeen }) =>
      `  ${lastSeen}  ${organization ?? '(unknown)'}  ${client} (${keyId})  ${operation}`,
  );
  return [
    ...verdict,
    ...(callers.length > 0 ? ['last calls:', ...callers] : []),
    ...claimedLines('with a key that was not checked:', check.unchecked),
    ...claimedLines('without a valid key:', check.unattributed),
    ...(check.gaps.length > 0 ? gapLines(check.gaps) : []),
  ].map(printable);
}

function claimedLines(title: string, claimed: readonly Claimed[]): string[] {
  const lines = claimed.map(({ organization, calls, served = 0, lastSeen }) => {
    const ofThem = served > 0 ? `, ${served} of them served by the legacy service` : '';
    return `  ${lastSeen}  ${organization ?? '(unknown)'}  ${counted(calls, 'call')}${ofThem}`;
  });
  return lines.length > 0 ? [title, ...lines] : [];
}
