import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { parseLink } from '../../../src/deprecation/policy/links.ts';

describe('a link target', () => {
  test.each([
    ['https://kv.example', 'https://kv.example/'],
    ['https://kv.example/a b?x=">"', 'https://kv.example/a%20b?x=%22%3E%22'],
    ['/docs/#deprecation', '/docs/#deprecation'],
    ['/docs/>; rel="x"\r\nX: y', '/docs/%3E;%20rel=%22x%22X:%20y'],
  ])('%j is %s in normal form', (text, value) => {
    expect(parseLink(text)).toEqual({ kind: 'ok', value });
  });

  test.each([
    '',
    'docs',
    'ftp://x/',
    'javascript:alert(1)',
    'https://u:p@x/',
    '//other.example/',
    '/\\other.example/',
    '/\t/other.example',
    '/.//other.example',
  ])('%j is refused', (text) => {
    expect(parseLink(text)).toMatchObject({ kind: 'invalid' });
  });

  test('has no character that could end the header, and is its own normal form', () => {
    fc.assert(
      fc.property(fc.constantFrom('/', 'https://x.example/', 'https://'), fc.string(), (start, tail) => {
        const parsed = parseLink(start + tail);
        fc.pre(parsed.kind === 'ok');
        const value = parsed.kind === 'ok' ? parsed.value : '';
        expect(value).toMatch(/^[!-;=?-~]+$/);
        expect(parseLink(value)).toEqual({ kind: 'ok', value });
      }),
    );
  });
});
