import { describe, expect, test } from '@jest/globals';
import { untilAborted } from '../../../src/lib/collections/until-aborted.ts';

async function* counting(onEnd: () => void): AsyncGenerator<number> {
  try {
    for (let count = 0; count < 3; count += 1) yield count;
  } finally {
    onEnd();
  }
}

async function collect(values: AsyncIterable<number>): Promise<number[]> {
  const all: number[] = [];
  for await (const value of values) all.push(value);
  return all;
}

describe('an iteration under a signal', () => {
  test('gives all values, and passes errors on, while nothing aborts it', async () => {
    let ends = 0;
    const { signal } = new AbortController();
    for (const given of [signal, undefined]) {
      const values = counting(() => (ends += 1));
      expect(await collect(untilAborted(values, given))).toEqual([0, 1, 2]);
    }
    const failing = counting(() => {
      throw new Error('broken');
    });
    await expect(collect(untilAborted(failing, signal))).rejects.toThrow('broken');
    expect(ends).toBe(2);
  });

  test('ends the iteration below it when it is left early', async () => {
    let ends = 0;
    for await (const value of untilAborted(
      counting(() => (ends += 1)),
      new AbortController().signal,
    )) {
      expect(value).toBe(0);
      break;
    }
    expect(ends).toBe(1);
  });

  test('asks for no value once it is aborted', async () => {
    let asked = 0;
    const values = (async function* () {
      yield (asked += 1);
    })();
    expect(await collect(untilAborted(values, AbortSignal.abort()))).toEqual([]);
    expect(asked).toBe(0);
  });

  test('ends while a value is awaited, whatever comes of that value', async () => {
    let fail: (error: Error) => void = () => {};
    const silent = (async function* (): AsyncGenerator<number> {
      yield 0;
      await new Promise((_, reject) => {
        fail = reject;
      });
    })();
    const aborting = new AbortController();
    setTimeout(() => aborting.abort(), 10);
    expect(await collect(untilAborted(silent, aborting.signal))).toEqual([0]);
    fail(new Error('too late to matter'));
    expect(await collect(untilAborted(silent, aborting.signal))).toEqual([]);
  });
});
