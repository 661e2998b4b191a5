import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  checkPolicy,
  layerPolicy,
  exemptionsFor,
  phaseAt,
  readSettings,
  verdictAt,
  type DeprecationPolicy,
} from '../../../src/deprecation/policy/policy.ts';

const at = (text: string) => Date.parse(text);
const NOON = at('2027-03-01T12:00:00Z');
const HOUR = 3_600_000;
const policyWith = (layer: Partial<DeprecationPolicy>) => layerPolicy(layer);

describe('the layers of the policy', () => {
  test('a higher layer overrides the settings it has and no others', () => {
    const policy = layerPolicy(
      { deprecatedAt: 1, sunsetAt: 2, documentationUrl: 'https://docs.example/' },
      { sunsetAt: 3, afterSunset: 'gone' },
      { sunsetAt: 4 },
    );
    expect(policy).toEqual({
      deprecatedAt: 1,
      sunsetAt: 4,
      documentationUrl: 'https://docs.example/',
      afterSunset: 'gone',
      brownouts: [],
      exemptions: [],
    });
  });

  test('settings are parsed into a layer, without the absent ones', () => {
    expect(
      readSettings({
        deprecatedAt: '2027-01-01',
        sunsetAt: undefined,
        successorUrl: 'https://kv.example/v2',
        documentationUrl: '/docs/#deprecation',
        afterSunset: 'gone',
      }),
    ).toEqual({
      layer: {
        deprecatedAt: at('2027-01-01T00:00:00Z'),
        successorUrl: 'https://kv.example/v2',
        documentationUrl: '/docs/#deprecation',
        afterSunset: 'gone',
      },
      mistakes: [],
    });
  });

  test('every mistake in the settings is reported at once', () => {
    const read = readSettings({
      sunsetAt: 'soon',
      successorUrl: 'javascript:alert(1)',
      documentationUrl: 'https://user:secret@docs.example/',
      afterSunset: 'maybe',
    });
    expect(read).toMatchObject({
      layer: {},
      mistakes: ['sunsetAt', 'successorUrl', 'documentationUrl', 'afterSunset'].map((setting) => ({
        setting,
      })),
    });
  });
});

describe('an invalid policy is refused with the reason', () => {
  test.each<[string, Partial<DeprecationPolicy>, string]>([
    [
      'a sunset before the deprecation',
      { deprecatedAt: NOON, sunsetAt: NOON - HOUR },
      'the sunset (2027-03-01T11:00:00Z) is before the deprecation (2027-03-01T12:00:00Z)',
    ],
    [
      'brownouts that overlap',
      {
        brownouts: [
          { start: NOON + HOUR, end: NOON + 3 * HOUR },
          { start: NOON, end: NOON + HOUR + 1 },
        ],
      },
      'brownouts 2027-03-01T12:00:00Z/2027-03-01T13:00:00.001Z and 2027-03-01T13:00:00Z/2027-03-01T15:00:00Z overlap',
    ],
  ])('%s', (_name, layer, reason) => {
    expect(checkPolicy(policyWith(layer), NOON)).toEqual([reason]);
  });

  test('a brownout may have begun, and may begin at the end of another', () => {
    const brownouts = [
      { start: NOON - HOUR, end: NOON + HOUR },
      { start: NOON + HOUR, end: NOON + 2 * HOUR },
    ];
    expect(checkPolicy(policyWith({ deprecatedAt: NOON, sunsetAt: NOON, brownouts }), NOON)).toEqual([]);
  });

  test('brownouts are accepted exactly if no two overlap', () => {
    const windows = fc.array(
      fc.record({ start: fc.integer({ min: 0, max: 40 }), length: fc.integer({ min: 1, max: 10 }) }),
      { maxLength: 6 },
    );
    fc.assert(
      fc.property(windows, (list) => {
        const brownouts = list.map(({ start, length }) => ({ start, end: start + length }));
        const share = brownouts.some((a, i) =>
          brownouts.some((b, j) => i < j && a.start < b.end && b.start < a.end),
        );
        expect(checkPolicy(policyWith({ brownouts }), -1).length > 0).toBe(share);
      }),
    );
  });
});

describe('phases', () => {
  const policy = policyWith({
    deprecatedAt: NOON,
    sunsetAt: NOON + 10 * HOUR,
    brownouts: [{ start: NOON + HOUR, end: NOON + 2 * HOUR }],
  });

  test('go from announced over brownouts to sunset, each at its exact time', () => {
    expect(phaseAt(policyWith({}), NOON)).toBe('none');
    expect(phaseAt(policyWith({ sunsetAt: NOON + HOUR }), NOON)).toBe('announced');
    expect(phaseAt(policy, NOON)).toBe('announced');
    expect(phaseAt(policy, NOON + HOUR)).toBe('brownout');
    expect(phaseAt(policy, NOON + 2 * HOUR)).toBe('announced');
    expect(phaseAt(policy, NOON + 10 * HOUR - 1)).toBe('announced');
    expect(phaseAt(policy, NOON + 10 * HOUR)).toBe('sunset');
  });

  test('calls are served after the sunset unless afterSunset is gone', () => {
    const later = NOON + 11 * HOUR;
    expect(verdictAt(policy, later)).toBe('serve');
    expect(verdictAt({ ...policy, afterSunset: 'gone' }, later)).toEqual({ gone: 'sunset' });
  });

  test('a call during a brownout gets its end', () => {
    expect(verdictAt(policy, NOON + HOUR)).toEqual({ gone: 'brownout', until: NOON + 2 * HOUR });
  });
});

describe('exemptions', () => {
  const gone = policyWith({
    sunsetAt: NOON,
    afterSunset: 'gone',
    exemptions: [{ organizationId: 'acme', until: NOON + HOUR }],
  });
  const exemptions = [...gone.exemptions, { keyId: 'k_1', until: NOON + HOUR }];
  const withKey = { ...gone, exemptions };

  test('may apply to calls that claim their organization, or to all if they are of a key, until they end', () => {
    expect(exemptionsFor(gone, NOON, 'acme')).toEqual(gone.exemptions);
    expect(exemptionsFor(gone, NOON, 'other')).toEqual([]);
    expect(exemptionsFor(gone, NOON, undefined)).toEqual([]);
    expect(exemptionsFor(gone, NOON + HOUR, 'acme')).toEqual([]);
    expect(exemptionsFor(withKey, NOON, 'acme')).toEqual(exemptions);
    expect(exemptionsFor(withKey, NOON, 'other')).toEqual([exemptions[1]]);
    expect(exemptionsFor(withKey, NOON + HOUR, 'other')).toEqual([]);
  });
});
