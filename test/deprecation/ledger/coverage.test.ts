import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { findGaps, defaultFlushMs, silenceMs, type Alive } from '../../../src/deprecation/ledger/coverage.ts';
import { minuteMs } from '../../../src/lib/days.ts';

const at = (time: string) => Date.parse(`2027-03-01T${time}Z`);
const NOW = at('13:00:00');
const range = { start: at('12:00:00'), end: at('13:00:00') };
const alive = (from: string, to: string, state: Alive['state']): Alive => ({
  start: at(from),
  end: at(to),
  state,
});
const gap = (from: string, to: string) => ({ start: at(from), end: at(to) });

describe('gaps in what was measured', () => {
  test('do not exist if an instance was running throughout', () => {
    expect(findGaps([alive('11:00:00', '12:59:58', 'open')], range, NOW)).toEqual([]);
  });

  test('cover the whole range if no instance was running', () => {
    expect(findGaps([], range, NOW)).toEqual([gap('12:00:00', '13:00:00')]);
  });

  test('lie between a shutdown and the next start, to the minute', () => {
    const counters = [alive('11:00:00', '12:10:30', 'closed'), alive('12:20:30', '13:00:00', 'open')];
    expect(findGaps(counters, range, NOW)).toEqual([gap('12:11:00', '12:20:00')]);
  });

  test('do not exist if the next instance started within the same minute', () => {
    const counters = [alive('11:00:00', '12:10:30', 'closed'), alive('12:10:50', '13:00:00', 'open')];
    expect(findGaps(counters, range, NOW)).toEqual([]);
  });

  test('follow a crash, even if another instance was running', () => {
    const counters = [alive('11:00:00', '12:10:30', 'open'), alive('11:00:00', '13:00:00', 'open')];
    expect(findGaps(counters, range, NOW)).toEqual([gap('12:10:00', '12:11:00')]);
  });

  test('are where calls were lost, even if every instance was running', () => {
    const counters = [alive('12:10:30', '12:11:10', 'lost'), alive('11:00:00', '13:00:00', 'open')];
    expect(findGaps(counters, range, NOW)).toEqual([gap('12:10:00', '12:12:00')]);
  });

  test('do not occur at midnight while an instance is running', () => {
    const midnight = Date.parse('2027-03-02T00:00:00Z');
    const days: Alive[] = [
      { start: at('12:00:00'), end: midnight, state: 'on' },
      { start: midnight, end: midnight + 5 * minuteMs, state: 'open' },
    ];
    const over = { start: at('12:00:00'), end: midnight + 60 * minuteMs };
    expect(findGaps(days, over, midnight + 5 * minuteMs)).toEqual([]);
  });

  test('do not lie in the future, nor in the first seconds without a write', () => {
    const counter = [alive('11:00:00', '12:30:00', 'open')];
    expect(findGaps(counter, range, at('12:30:00') + silenceMs)).toEqual([]);
    expect(findGaps(counter, range, at('12:30:00') + silenceMs + 1)).toEqual([
      { start: at('12:30:00'), end: at('12:30:00') + silenceMs + 1 },
    ]);
  });

  test('are exactly the minutes without a running instance and those of a crash, for any history', () => {
    const minutes = fc.integer({ min: 0, max: 60 * 60_000 });
    const history = fc.array(
      fc.record({
        start: minutes,
        length: minutes,
        state: fc.constantFrom<Alive['state']>('open', 'closed'),
      }),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(history, (list) => {
        const counters = list.map(({ start, length, state }) => ({
          start: range.start + start,
          end: Math.min(range.start + start + length, NOW),
          state,
        }));
        const gaps = findGaps(counters, range, NOW);
        for (let minute = range.start; minute < range.end; minute += minuteMs) {
          const inGap = gaps.some(({ start, end }) => start <= minute && minute < end);
          const touches = (from: number, to: number) =>
            Math.floor(from / minuteMs) * minuteMs <= minute &&
            (minute < to || Math.floor(from / minuteMs) * minuteMs === minute);
          const crashed = counters.some(
            ({ end, state }) =>
              state === 'open' && end < NOW - silenceMs && touches(end, end + defaultFlushMs),
          );
          const lived = counters.some(({ start, end, state }) =>
            touches(start, state === 'open' && end >= NOW - silenceMs ? NOW : end),
          );
          expect(inGap).toBe(crashed || !lived);
        }
      }),
    );
  });
});
