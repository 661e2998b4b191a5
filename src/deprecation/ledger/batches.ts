import { dayName } from '../../lib/days.ts';
import { expiryOf } from './keys.ts';
import type { KeyTally, Use } from './tally.ts';

/** Pairs of key and operation in one script call, so that it takes Redis a millisecond or two at most. */
const usesPerBatch = 150;

/** What lua/deprecation/record_usage.lua takes as JSON. */
interface Batch {
  /** Day → when its keys expire, in seconds. */
  days: Record<string, number>;
  keys: [
    keyId: string,
    client: string,
    uses: [
      operation: string,
      first: number,
      last: number,
      counts: [day: string, status: string, calls: number][],
    ][],
    agents: [agent: string, last: number][],
  ][];
}

/** Cuts the tallies of one organization's keys into batches for lua/deprecation/record_usage.lua, as JSON. */
export function cutBatches(keys: Iterable<readonly [string, KeyTally]>): string[] {
  const batches: string[] = [];
  let batch: Batch = { days: {}, keys: [] };
  let uses = 0;
  const cut = () => {
    if (batch.keys.length > 0) batches.push(JSON.stringify(batch));
    batch = { days: {}, keys: [] };
    uses = 0;
  };
  for (const [keyId, tally] of keys) {
    if (uses + tally.uses.size > usesPerBatch) cut();
    uses += tally.uses.size;
    batch.keys.push([
      keyId,
      tally.client ?? '',
      Array.from(tally.uses, ([operation, { first, last, days }]) => [
        operation,
        first,
        last,
        countsOf(days),
      ]),
      Array.from(tally.agents, ([agent, last]): [string, number] => [withoutControls(agent), last]).filter(
        ([agent]) => agent !== '',
      ),
    ]);
    for (const { days } of tally.uses.values()) {
      for (const day of days.keys()) batch.days[dayName(day)] = expiryOf(day);
    }
  }
  cut();
  return batches;
}

function countsOf(days: Use['days']): [day: string, status: string, calls: number][] {
  return Array.from(days).flatMap(([day, counts]) =>
    counts.flatMap((calls, digit): [string, string, number][] =>
      calls > 0 ? [[dayName(day), `${digit}xx`, calls]] : [],
    ),
  );
}

/** Removes control and format characters and lone surrogates. */
function withoutControls(agent: string): string {
  return agent.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '');
}
