import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

const folder = new URL('../../../src/redis/lua/', import.meta.url).pathname;
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.lua'),
);

test('keys are spelled in lua/lib/store.lua alone', () => {
  const spelling = files.filter((file) => /KEYS\[1\]\s*\.\./.test(readFileSync(`${folder}${file}`, 'utf8')));
  expect(spelling).toEqual(['lib/store.lua']);
});

test('a script names the parts that it includes, and says in its header what it takes and returns', () => {
  for (const file of files.filter((name) => !name.startsWith('lib/'))) {
    const text = readFileSync(`${folder}${file}`, 'utf8');
    expect({ file, text }).toMatchObject({
      text: expect.stringMatching(/^#!lua( flags=(no-writes|allow-oom))?\n/),
    });
    expect({ file, text }).toMatchObject({ text: expect.stringMatching(/^-- KEYS\[1\] +<prefix>/m) });
  }
});
