import { expect, test } from '@jest/globals';
import { createProgress } from '../../../src/migration/context/progress.ts';

test('progress without a terminal is a line every few seconds, with rate, share and time left', async () => {
  let output = '';
  let now = 0;
  const write = (text: string): void => {
    output += text;
  };
  const progress = await createProgress({ write }, () => now);
  progress.begin(3);
  progress.next();
  progress.next();
  progress.advance('writing profiles', 500, 0.01);
  expect(output).toBe('');
  now = 5000;
  progress.advance('writing profiles', 500, 0.25);
  expect(output).toBe('writing profiles (pass 2 of 3): 1,000 records, 25 %, 200/s, 15 s left\n');
  progress.advance('writing profiles', 500, 0.3);
  progress.stop();
  expect(output.split('\n')).toHaveLength(2);

  output = '';
  progress.begin(1);
  progress.advance('rolling back', 0, 0);
  now = 10_000;
  progress.advance('rolling back', 2000, 0);
  expect(output).toBe('rolling back: 2,000 records, 400/s\n');

  output = '';
  now = 20_000;
  progress.advance('pruning', 500, 0.01);
  expect(output).toBe('');
  now = 21_000;
  progress.advance('pruning', 500, 0.02);
  expect(output).toBe('pruning: 1,000 records, 2 %, 1,000/s, 49 s left\n');
});

test('progress on a terminal is a bar, which is removed at the end', async () => {
  let output = '';
  const terminal = {
    isTTY: true,
    columns: 100,
    write: (text: string) => {
      output += text;
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
  expect(output).not.toContain('{text}');
  expect(output).toContain('reading profiles');
  expect(output).toContain('50 %');
  expect(output).toContain('1,234 records');
  expect(output).toContain('writing profiles');
});
