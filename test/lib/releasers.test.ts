import { expect, test } from '@jest/globals';
import { createReleasers } from '../../src/lib/releasers.ts';

test('everything is closed once, last opened first, also where another close fails', async () => {
  const failed: unknown[] = [];
  const releasers = createReleasers((name, error) => failed.push([name, error]));
  const closed: string[] = [];
  const error = new Error('cannot be closed');
  releasers.onClose('first', () => closed.push('first'));
  releasers.onClose('second', () => {
    throw error;
  });
  releasers.onClose('third', async () => {
    await Promise.resolve();
    closed.push('third');
  });
  await releasers.close();
  await releasers.close();
  expect([closed, failed]).toEqual([['third', 'first'], [['second', error]]]);
});
