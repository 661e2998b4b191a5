import type { RedisClient } from '../../redis/connection/connect.ts';
import { dayMs, dayName, dayOf, minuteMs } from '../../lib/days.ts';
import { coverageKey } from './keys.ts';
import type { Window } from '../../lib/iso8601.ts';

/** How often counters write what they have counted. */
export const usualFlushMs = 3000;
/** An instance that has not written for so long is considered dead. */
export const silenceMs = 10_000;

/**
 * When an instance was counting on one day: every call it answered in this time is in the ledger. `open`: it was running
 * when it wrote this; `on`: it continued into the next day; `closed`: it was shut down in order and has written all.
 */
export interface Alive extends Window {
  instance: string;
  state: 'open' | 'on' | 'closed';
}

/**
 * Records that an instance has been counting from `start`, and has written everything up to `until` (ms).
 * `since` is the `until` of the call before: days that lie between are recorded too. One field per instance and
 * day, whatever happens.
 */
export async function writeCoverage(
  client: RedisClient,
  prefix: string,
  { instance, start, since, until, closed, retentionDays }: CoverageEntry,
): Promise<void> {
  const lastDay = dayOf(until);
  // Latest first: a crash in between must not look like a day that continued.
  for (let day = lastDay; day >= dayOf(since); day -= 1) {
    const from = Math.max(start, day * dayMs);
    const to = Math.min(until, (day + 1) * dayMs);
    const state: Alive['state'] = day < lastDay ? 'on' : closed ? 'closed' : 'open';
    const key = coverageKey(prefix, dayName(day));
    const replies = await client
      .pipeline()
      .hset(key, instance, `${from} ${to} ${state}`)
      .expireat(key, ((day + 1 + retentionDays) * dayMs) / 1000)
      .exec();
    const failed = replies?.find(([error]) => error !== null)?.[0];
    if (failed) throw failed;
  }
}

export interface CoverageEntry {
  instance: string;
  start: number;
  since: number;
  until: number;
  closed: boolean;
  retentionDays: number;
}

/** When instances were counting, on the days that the range (ms) touches. */
export async function readCoverage(
  client: RedisClient,
  prefix: string,
  { start, end }: Window,
): Promise<Alive[]> {
  const pipeline = client.pipeline();
  for (let day = dayOf(start); day * dayMs < end; day += 1) {
    pipeline.hgetall(coverageKey(prefix, dayName(day)));
  }
  const replies = (await pipeline.exec()) ?? [];
  return replies.flatMap(([error, entries]) => {
    if (error !== null) throw error;
    return Object.entries(entries as Record<string, string>).map(([instance, text]) => {
      const [from, to, state] = text.split(' ');
      return { instance, start: Number(from), end: Number(to), state: state as Alive['state'] };
    });
  });
}

/**
 * The parts of the range in which calls may not have been counted, as of `now` (ms), in whole minutes: those in which no
 * instance was running, and the last flush interval of an instance that died. The time after `now` is not a gap.
 */
export function findGaps(alive: readonly Alive[], range: Window, now: number): Window[] {
  const measured: Window[] = [];
  const lost: Window[] = [];
  for (const { start, end, state } of alive) {
    const lives = state === 'open' && end >= now - silenceMs;
    measured.push(wholeMinutes(start, lives ? Math.max(end, now) : end));
    if (state === 'open' && !lives) lost.push(wholeMinutes(end, end + usualFlushMs));
  }
  const end = Math.min(range.end, now);
  const within = { start: Math.floor(range.start / minuteMs) * minuteMs, end };
  const unmeasured = subtract([within], measured);
  return join([...unmeasured, ...intersect(lost, within)]);
}

function wholeMinutes(start: number, end: number): Window {
  return {
    start: Math.floor(start / minuteMs) * minuteMs,
    end: Math.max(Math.ceil(end / minuteMs), Math.floor(start / minuteMs) + 1) * minuteMs,
  };
}

function intersect(windows: readonly Window[], within: Window): Window[] {
  return windows
    .map(({ start, end }) => ({ start: Math.max(start, within.start), end: Math.min(end, within.end) }))
    .filter(({ start, end }) => start < end);
}

/** Merges windows that touch, in order of time. */
function join(windows: readonly Window[]): Window[] {
  const joined: Window[] = [];
  for (const window of windows.toSorted((a, b) => a.start - b.start)) {
    const last = joined.at(-1);
    if (last !== undefined && window.start <= last.end) last.end = Math.max(last.end, window.end);
    else joined.push({ ...window });
  }
  return joined;
}

function subtract(windows: readonly Window[], taken: readonly Window[]): Window[] {
  const holes = join(taken);
  return join(windows).flatMap((window) => {
    const left: Window[] = [];
    let { start } = window;
    for (const hole of holes) {
      if (hole.end <= start || hole.start >= window.end) continue;
      if (hole.start > start) left.push({ start, end: hole.start });
      start = hole.end;
    }
    if (start < window.end) left.push({ start, end: window.end });
    return left;
  });
}
