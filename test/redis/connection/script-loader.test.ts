import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';

const folder = new URL('../../../src/redis/lua/', import.meta.url).pathname;
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.lua'),
);

test('keys are spelled in lua/lib/store.lua alone', () => {
  const spelling = files.filter((file) => /KEYS\[1\]\s*\.\./.test(readFileSync(`${folder}${file}`, 'utf8')));
  expect(spelling).toEqual(['lib/store.lua']);
});

describe.each(files.filter((file) => !file.startsWith('lib/')))('the script %s', (file) => {
  const text = readFileSync(`${folder}${file}`, 'utf8');
  const header = text.replace(/^[^-#\n][\s\S]*/m, '');

  test('begins with its flags, and says which key it takes if that is not the base of an organization', () => {
    expect(header).toMatch(/^#!lua( flags=(no-writes|allow-oom))?\n/);
    if (header.includes('\n-- @key any\n')) expect(header).toMatch(/^-- KEYS\[1\] +\S/m);
  });

  test('names its arguments', () => {
    if (text.includes('ARGV')) expect(text).toMatch(/^-- ARGV\[|^local .*= .*ARGV/m);
  });

  test('describes every reply in its header', () => {
    const replies = text.slice(header.length).matchAll(/\b(?:return (?:\{ )?|kind = )'([\w-]+)'/g);
    for (const [, word = ''] of replies) expect(header).toMatch(new RegExp(String.raw`\b${word}\b`));
  });
});
