import { expect, jest, test } from '@jest/globals';
import { createPacer } from '../../../../src/migration/engine/write/pacer.ts';

test('whoever waits longer than a rate demands is not overtaken by the next', async () => {
  const pacer = createPacer(1000, new AbortController().signal);
  const resolved: string[] = [];
  await pacer.wait(5);
  const first = pacer.wait(1).then(() => resolved.push('first'));
  // By then there is no need to wait, but no timer has had its turn.
  for (const until = Date.now() + 20; Date.now() < until;);
  const second = pacer.wait(1).then(() => resolved.push('second'));
  await Promise.all([first, second]);
  expect(resolved).toEqual(['first', 'second']);
});

test('a clock that is set back delays nobody', async () => {
  const pacer = createPacer(1000, new AbortController().signal);
  const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() - 3_600_000);
  try {
    await pacer.wait(5);
    await pacer.wait(1);
  } finally {
    clock.mockRestore();
  }
});
