import { expect, test } from '@jest/globals';
import { createProgress } from '../../src/migration/engine/progress.ts';

test('without a terminal it is a line every few seconds, with rate and time left', async () => {
  let told = '';
  let now = 0;
  const write = (text: string): void => {
    told += text;
  };
  const progress = await createProgress({ write }, () => now);
  progress.begin(3);
  progress.next();
  progress.next();
  progress.advance('writing profiles', 500, 0.01);
  expect(told).toBe('');
  now = 5000;
  progress.advance('writing profiles', 500, 0.25);
  expect(told).toBe('writing profiles (pass 2 of 3): 1,000 records, 25 %, 200/s, 15 s left\n');
  progress.advance('writing profiles', 500, 0.3);
  progress.stop();
  expect(told.split('\n')).toHaveLength(2);
});

test('on a terminal it is a bar, which is gone in the end', async () => {
  let told = '';
  const terminal = {
    isTTY: true,
    columns: 100,
    write: (text: string) => {
      told += text;
      return true;
    },
    on: () => terminal,
    cursorTo: () => true,
    clearLine: () => true,
  };
  const progress = await createProgress(terminal);
  progress.advance('reading profiles', 1234, 0.5);
  progress.advance('writing profiles', 10, 0.1);
  progress.stop();
  expect(told).toContain('reading profiles');
  expect(told).toContain('50 %');
  expect(told).toContain('1,234 records');
  expect(told).toContain('writing profiles');
});
