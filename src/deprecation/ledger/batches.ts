import { dayName } from '../../lib/days.ts';
import { expiryOf } from './keys.ts';
import type { KeyTally, Use } from './tally.ts';

/** Tallies of keys that one script call records. */
export type Batch = readonly (readonly [keyId: string, tally: KeyTally])[];

/** A batch as JSON, as lua/deprecation/record_usage.lua takes it. */
export function batchText(batch: Batch): string {
  const days = batch.flatMap(([, { uses }]) => [...uses.values()].flatMap((use) => [...use.days.keys()]));
  return JSON.stringify({
    days: Object.fromEntries(days.map((day) => [dayName(day), expiryOf(day)])),
    keys: batch.map(([keyId, { client = '', uses, agents }]) => [
      keyId,
      client,
      Array.from(uses, ([operation, use]) => [operation, use.first, use.last, countsOf(use.days)]),
      Array.from(agents, ([agent, last]) => [withoutControls(agent), last]).filter(([agent]) => agent !== ''),
    ]),
  });
}

/** Day, status class and calls. */
function countsOf(days: Use['days']): [string, string, number][] {
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
