import { expect, test } from '@jest/globals';
import { shareReads } from '../../src/admin-port/shared-reads.ts';

/** A read that records its questions, and answers with their number. */
function counting(now: { ms: number }) {
  const asked: string[] = [];
  const read = async (question: string): Promise<number> => {
    if (question === 'broken') {
      asked.push(question);
      throw new Error('Redis is away');
    }
    return asked.push(question);
  };
  return {
    asked,
    shared: shareReads(
      read,
      () => now.ms,
      (question) => question,
    ),
  };
}

test('a question asked several times within five seconds is read from Redis once', async () => {
  const now = { ms: 0 };
  const { asked, shared } = counting(now);
  expect(await Promise.all([shared('a'), shared('a')])).toEqual([1, 1]);
  now.ms = 4999;
  expect(await shared('a')).toBe(1);
  now.ms = 5000;
  expect(await shared('a')).toBe(2);
  expect(asked).toEqual(['a', 'a']);
});

test('a read that takes longer is shared, too, and for five seconds after its answer', async () => {
  let ms = 0;
  const answers: ((answer: string) => void)[] = [];
  const shared = shareReads<void, string>(
    () => new Promise((resolve) => answers.push(resolve)),
    () => ms,
  );
  const first = shared();
  ms = 20_000;
  const second = shared();
  expect(answers).toHaveLength(1);
  answers[0]?.('slow');
  expect(await Promise.all([first, second])).toEqual(['slow', 'slow']);
  ms = 24_999;
  expect(await shared()).toBe('slow');
  ms = 25_000;
  void shared();
  expect(answers).toHaveLength(2);
});

test('a question is read again after the clock was set back', async () => {
  const now = { ms: 3_600_000 };
  const { shared } = counting(now);
  expect(await shared('a')).toBe(1);
  now.ms = 0;
  expect(await shared('a')).toBe(2);
});

test('different questions are read separately', async () => {
  const { asked, shared } = counting({ ms: 0 });
  expect(await Promise.all([shared('a'), shared('b'), shared('a')])).toEqual([1, 2, 1]);
  expect(asked).toEqual(['a', 'b']);
});

test('a failed read fails for all callers that share it, and the next call reads again', async () => {
  const { asked, shared } = counting({ ms: 0 });
  const failures = await Promise.allSettled([shared('broken'), shared('broken')]);
  expect(failures.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await expect(shared('broken')).rejects.toThrow('Redis is away');
  expect(asked).toEqual(['broken', 'broken']);
});
