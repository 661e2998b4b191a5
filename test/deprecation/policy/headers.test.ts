import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { deprecationHeaders } from '../../../src/deprecation/policy/headers.ts';
import { layerPolicy, readSettings, type PolicyLayer } from '../../../src/deprecation/policy/policy.ts';

function headersOf(layer: PolicyLayer): Record<string, string | undefined> {
  const headers = deprecationHeaders(layerPolicy(layer));
  return Object.fromEntries(
    headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1]] as const] : [])),
  );
}

describe('the deprecation headers', () => {
  test('have the forms of RFC 9745, RFC 8594 and RFC 8288', () => {
    expect(
      headersOf({
        deprecatedAt: Date.parse('2023-06-30T23:59:59.900Z'),
        sunsetAt: Date.parse('2024-06-30T23:59:59Z'),
        documentationUrl: 'https://docs.example/deprecation',
        successorUrl: 'https://kv.example/',
      }),
    ).toEqual({
      Deprecation: '@1688169599',
      Sunset: 'Sun, 30 Jun 2024 23:59:59 GMT',
      Link:
        '<https://docs.example/deprecation>; rel="deprecation", ' +
        '<https://docs.example/deprecation>; rel="sunset", ' +
        '<https://kv.example/>; rel="successor-version"',
    });
  });

  test('link to the sunset document if there is one', () => {
    expect(headersOf({ sunsetUrl: 'https://docs.example/sunset' })).toEqual({
      Link: '<https://docs.example/sunset>; rel="sunset"',
    });
  });

  test('make links to a path of this service absolute if its address is known', () => {
    const policy = layerPolicy({
      documentationUrl: '/docs/#deprecation',
      successorUrl: 'https://kv.example/',
    });
    expect(deprecationHeaders(policy, 'https://api.example/legacy')).toEqual([
      'Link',
      '<https://api.example/legacy/docs/#deprecation>; rel="deprecation", ' +
        '<https://api.example/legacy/docs/#deprecation>; rel="sunset", ' +
        '<https://kv.example/>; rel="successor-version"',
    ]);
    expect(deprecationHeaders(policy)[1]).toContain('</docs/#deprecation>; rel="deprecation"');
  });

  test('are absent if nothing is configured', () => {
    expect(deprecationHeaders(layerPolicy())).toEqual([]);
  });

  test('never contain a sunset before the deprecation', () => {
    expect(headersOf({ deprecatedAt: 2000, sunsetAt: 1000 })).toEqual({ Deprecation: '@2' });
    expect(headersOf({ deprecatedAt: 2000, sunsetAt: 2000 })).toHaveProperty('Sunset');
  });

  test('are well-formed for every valid policy', () => {
    const time = fc.integer({ min: 0, max: Date.parse('9999-12-31T23:59:59Z') });
    const url = fc.option(
      fc.oneof(fc.webUrl({ withFragments: true, withQueryParameters: true }), hostileUrl()),
      {
        nil: undefined,
      },
    );
    fc.assert(
      fc.property(time, time, url, url, (deprecatedAt, sunsetAt, successorUrl, documentationUrl) => {
        const { layer: links, mistakes } = readSettings({ successorUrl, documentationUrl });
        fc.pre(mistakes.length === 0);
        const headers = headersOf({ deprecatedAt, sunsetAt, ...links });
        expect(Number(/^@(\d+)$/.exec(headers['Deprecation'] ?? '')?.[1])).toBe(
          Math.floor(deprecatedAt / 1000),
        );
        const sunset = headers['Sunset'];
        if (sunset === undefined) expect(sunsetAt).toBeLessThan(deprecatedAt);
        else {
          expect(sunset).toMatch(/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/);
          expect(Date.parse(sunset)).toBe(Math.floor(sunsetAt / 1000) * 1000);
        }
        const expectedLinks = (documentationUrl === undefined ? 0 : 2) + (successorUrl === undefined ? 0 : 1);
        const parsed = (headers['Link'] ?? '').match(/<[!-;=?-~]+>; rel="[a-z-]+"(?:, |$)/g) ?? [];
        expect(parsed.join('')).toBe(headers['Link'] ?? '');
        expect(parsed).toHaveLength(expectedLinks);
      }),
    );
  });
});

function hostileUrl() {
  return fc.string({ unit: 'binary' }).map((tail) => `/${tail}`);
}
