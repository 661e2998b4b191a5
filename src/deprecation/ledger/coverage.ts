import { setTimeout } from 'node:timers/promises';
import type { RedisClient } from '../../redis/connection/client.ts';
import { dayMs, dayName, dayOf, minuteMs } from '../../lib/days.ts';
import { coverageKey, expiryOf } from './keys.ts';
import type { Interval } from '../../lib/iso8601.ts';

/** How often instances write what they have counted, in ms. */
export const defaultFlushMs = 3000;
/** How long an instance may not have written before it is considered dead, in ms. */
export const silenceMs = 10_000;

/**
 * When an instance was counting on one day (ms): every call it answered in this time is in the ledger. `open`: it was
 * still running when it wrote this; `on`: it was running into the next day; `closed`: it was shut down in order. `lost`: of
 * this time, Redis has lost calls, whoever was counting.
 */
export interface Alive extends Interval {
  state: 'open' | 'on' | 'closed' | 'lost';
}

interface CoverageEntry {
  instance: string;
  start: number;
  since: number;
  until: number;
  closed: boolean;
}

/**
 * Records that an instance has been counting from `start`, and has written everything up to `until` (ms).
 * `since` is the `until` of the call before: days that lie between are recorded too. One field per instance and
 * day, whatever happens.
 */
export async function writeCoverage(
  store: RedisClient,
  prefix: string,
  { instance, start, since, until, closed }: CoverageEntry,
): Promise<void> {
  const lastDay = dayOf(until);
  // If the clock was ahead and has been set back, nobody has counted yet on the days to come.
  for (let day = dayOf(since); day > lastDay; day -= 1) {
    await store.hdel(coverageKey(prefix, dayName(day)), instance);
  }
  // Latest first: a crash in between must not look like a day that continued.
  for (let day = lastDay; day >= Math.min(dayOf(since), lastDay); day -= 1) {
    const from = Math.max(start, day * dayMs);
    const to = Math.min(until, (day + 1) * dayMs);
    const state: Alive['state'] = day < lastDay ? 'on' : closed ? 'closed' : 'open';
    await writeField(store, prefix, day, instance, `${from} ${to} ${state}`);
  }
}

/** Records under a new name that Redis has lost calls that were answered in this time (ms). */
export async function writeLost(
  store: RedisClient,
  prefix: string,
  name: string,
  { start, end }: Interval,
): Promise<void> {
  for (let day = dayOf(start); day <= dayOf(end); day += 1) {
    const [from, to] = [Math.max(start, day * dayMs), Math.min(end, (day + 1) * dayMs)];
    await writeField(store, prefix, day, name, `${from} ${to} lost`);
  }
}

async function writeField(
  store: RedisClient,
  prefix: string,
  day: number,
  field: string,
  text: string,
): Promise<void> {
  const key = coverageKey(prefix, dayName(day));
  await Promise.all([store.hset(key, field, text), store.expireat(key, expiryOf(day))]);
}

/** Until when (ms) an instance is recorded on the day of `time` (ms); -Infinity if it is not. */
export async function readCoveredUntil(
  store: RedisClient,
  prefix: string,
  instance: string,
  time: number,
): Promise<number> {
  const text = await store.hget(coverageKey(prefix, dayName(dayOf(time))), instance);
  return text === null ? -Infinity : Number(text.split(' ')[1]);
}

/** When instances were counting, on the days that the range (ms) touches. */
export async function readCoverage(
  store: RedisClient,
  prefix: string,
  { start, end }: Interval,
): Promise<Alive[]> {
  const days: Promise<Record<string, string>>[] = [];
  for (let day = dayOf(start); day * dayMs < end; day += 1) {
    days.push(store.hgetall(coverageKey(prefix, dayName(day))));
  }
  return (await Promise.all(days)).flatMap((entries) =>
    Object.values(entries).map((text) => {
      const [from, to, state] = text.split(' ');
      return { start: Number(from), end: Number(to), state: state as Alive['state'] };
    }),
  );
}

/** How often to look whether an instance has written again, in ms. */
const lookMs = 200;

/**
 * Waits until the instances that seem to be running have written everything up to `time` (ms) or are dead; rejects if
 * aborted. An instance may die right after a write: what it counted since is missing, and nobody knows yet.
 */
export async function untilWritten(
  store: RedisClient,
  prefix: string,
  time: number,
  signal?: AbortSignal,
): Promise<void> {
  const begun = performance.now();
  for (;;) {
    const alive = await readCoverage(store, prefix, { start: time - silenceMs, end: time });
    const oldest = time - silenceMs + performance.now() - begun;
    if (!alive.some(({ state, end }) => state === 'open' && end < time && end >= oldest)) return;
    await setTimeout(lookMs, undefined, { signal });
  }
}

/**
 * The parts of the range in which calls may not have been counted, as of `now` (ms), in whole minutes: those in which
 * no instance was running, the last flush interval of an instance that died, and those of which calls were lost. The
 * time after `now` is not a gap. An instance that was running counts as such up to now if it has written in the last
 * `silence` ms.
 */
export function findGaps(
  alive: readonly Alive[],
  range: Interval,
  now: number,
  silence = silenceMs,
): Interval[] {
  const end = Math.min(range.end, now);
  const first = Math.floor(range.start / minuteMs);
  const measured = new Uint8Array(Math.max(0, Math.ceil(end / minuteMs) - first));
  const mark = (from: number, to: number, value: 0 | 1) => {
    const start = Math.floor(from / minuteMs) - first;
    const stop = Math.max(Math.ceil(to / minuteMs) - first, start + 1);
    measured.fill(value, Math.max(0, start), Math.max(0, stop));
  };
  const isRunning = ({ state, end: last }: Alive) => state === 'open' && last >= now - silence;
  for (const counter of alive) {
    if (counter.state === 'lost') continue;
    mark(counter.start, isRunning(counter) ? Math.max(counter.end, now) : counter.end, 1);
  }
  for (const counter of alive) {
    if (counter.state === 'lost') mark(counter.start, counter.end, 0);
    if (counter.state === 'open' && !isRunning(counter)) mark(counter.end, counter.end + defaultFlushMs, 0);
  }
  const gaps: Interval[] = [];
  for (let from = measured.indexOf(0); from !== -1;) {
    const next = measured.indexOf(1, from);
    const to = next === -1 ? measured.length : next;
    gaps.push({ start: (first + from) * minuteMs, end: Math.min((first + to) * minuteMs, end) });
    from = measured.indexOf(0, to);
  }
  return gaps;
}
