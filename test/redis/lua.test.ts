import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';

const folder = new URL('../../src/redis/lua/', import.meta.url).pathname;
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.lua'),
);
const textOf = (file: string): string => readFileSync(`${folder}${file}`, 'utf8');
const headerOf = (file: string): string => textOf(file).replace(/^[^-#\n][\s\S]*/m, '');
const scripts = files.filter((file) => !file.startsWith('lib/'));

test('keys are spelled in lua/lib/store.lua alone', () => {
  expect(files.filter((file) => /KEYS\[1\]\s*\.\./.test(textOf(file)))).toEqual(['lib/store.lua']);
});

describe('a script', () => {
  test.each(scripts)('begins with its flags: %s', (file) => {
    expect(headerOf(file)).toMatch(/^#!lua( flags=(no-writes|allow-oom))?\n/);
  });

  test.each(scripts.filter((file) => headerOf(file).includes('\n-- @key any\n')))(
    'says which key it takes if that is not the base of an organization: %s',
    (file) => {
      expect(headerOf(file)).toMatch(/^-- KEYS\[1\] +\S/m);
    },
  );

  test.each(scripts.filter((file) => textOf(file).includes('ARGV')))('names its arguments: %s', (file) => {
    expect(textOf(file)).toMatch(/^-- ARGV\[|^local .*= .*ARGV/m);
  });

  test.each(scripts)('describes every reply in its header: %s', (file) => {
    const header = headerOf(file);
    const replies = /(?:return (?:\{ )?|(?:kind|outcome) = |return \S+ and '[\w-]+' or )'([\w-]+)'/g;
    for (const [, word = ''] of textOf(file).slice(header.length).matchAll(replies)) {
      expect(header).toMatch(new RegExp(String.raw`\b${word}\b`));
    }
  });
});
