import { dayMs, dayName } from '../../lib/days.ts';
import type { KeyTally } from './tally.ts';

/** Pairs of key and operation in one script call, so that it takes Redis a millisecond or two at most. */
const usesPerBatch = 150;

/** What lua/deprecation/record_usage.lua takes as JSON. */
interface Batch {
  days: [day: string, expiresAtSeconds: number][];
  keys: [
    keyId: string,
    client: string,
    uses: [
      operation: string,
      first: number,
      last: number,
      counts: [day: number, status: string, calls: number][],
    ][],
    agents: [agent: string, last: number][],
  ][];
}

/** Cuts the tallies of one organization's keys into batches for lua/deprecation/record_usage.lua, as JSON. */
export function cutBatches(keys: Iterable<readonly [string, KeyTally]>, retentionDays: number): string[] {
  const batches: string[] = [];
  let batch: Batch = { days: [], keys: [] };
  let places = new Map<number, number>();
  let uses = 0;
  const placeOf = (day: number): number => {
    const known = places.get(day);
    if (known !== undefined) return known;
    const place = batch.days.push([dayName(day), ((day + 1 + retentionDays) * dayMs) / 1000]) - 1;
    places.set(day, place);
    return place;
  };
  const cut = () => {
    if (batch.keys.length > 0) batches.push(JSON.stringify(batch));
    batch = { days: [], keys: [] };
    places = new Map();
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
        Array.from(days).flatMap(([day, counts]) =>
          counts.flatMap((calls, digit): [number, string, number][] =>
            calls > 0 ? [[placeOf(day), `${digit}xx`, calls]] : [],
          ),
        ),
      ]),
      Array.from(tally.agents, ([agent, last]): [string, number] => [withoutControls(agent), last]).filter(
        ([agent]) => agent !== '',
      ),
    ]);
  }
  cut();
  return batches;
}

/** Removes control and format characters and lone surrogates. */
function withoutControls(agent: string): string {
  return agent.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '');
}
