import { describe, expect, test } from '@jest/globals';
import { clearInLayer, setInLayer } from '../../../src/deprecation/policy/policy-edits.ts';
import { layerPolicy, type PolicyLayer } from '../../../src/deprecation/policy/policy.ts';
import { policyLines, viewPolicy } from '../../../src/deprecation/policy/policy-view.ts';
import { readStored, writeStored } from '../../../src/deprecation/policy/stored-layer.ts';

const at = (text: string) => Date.parse(text);
const NOW = at('2027-03-01T12:00:00Z');
const defaults: PolicyLayer[] = [{ deprecatedAt: at('2026-11-01T00:00:00Z') }];
const set = (layer: PolicyLayer, flags: Parameters<typeof setInLayer>[2]) =>
  setInLayer(layer, defaults, flags, NOW);
const clear = (layer: PolicyLayer, flags: Parameters<typeof clearInLayer>[2]) =>
  clearInLayer(layer, defaults, flags, NOW);
const window = (start: string, end: string) => ({ start: at(start), end: at(end) });

describe('deprecation set', () => {
  test('replaces dates and links, adds windows and exemptions', () => {
    const before: PolicyLayer = {
      sunsetAt: at('2027-06-01T00:00:00Z'),
      brownouts: [window('2027-03-02T12:00:00Z', '2027-03-02T13:00:00Z')],
      exemptOrganizations: [{ organizationId: 'acme', until: at('2027-04-01T00:00:00Z') }],
    };
    const flags = {
      sunset: '2027-07-01',
      brownout: ['2027-03-01T12:00:00Z/PT30M'],
      exemptions: [
        { organizationId: 'acme', until: '2027-05-01' },
        { keyId: 'k_1', until: '2027-05-02' },
      ],
    };
    expect(set(before, flags)).toEqual({
      kind: 'edited',
      layer: {
        sunsetAt: at('2027-07-01T00:00:00Z'),
        brownouts: [
          window('2027-03-02T12:00:00Z', '2027-03-02T13:00:00Z'),
          window('2027-03-01T12:00:00Z', '2027-03-01T12:30:00Z'),
        ],
        exemptOrganizations: [{ organizationId: 'acme', until: at('2027-05-01T00:00:00Z') }],
        exemptKeys: [{ keyId: 'k_1', until: at('2027-05-02T00:00:00Z') }],
      },
    });
  });

  test('a window that is set already may be given again, however it is written', () => {
    const layer = { brownouts: [window('2027-04-01T00:00:00Z', '2027-04-01T01:00:00Z')] };
    expect(set(layer, { brownout: ['2027-04-01T00:00:00Z/PT1H'] })).toEqual({ kind: 'edited', layer });
  });

  test('refuses a sunset before the deprecation that the defaults give', () => {
    expect(set({}, { sunset: '2026-10-01' })).toEqual({
      kind: 'refused',
      reasons: ['the sunset (2026-10-01T00:00:00Z) is before the deprecation (2026-11-01T00:00:00Z)'],
    });
  });

  test.each([
    [{ brownout: ['2027-02-01T00:00:00Z/PT1H'] }, 'is wholly in the past'],
    [{ brownout: ['2027-04-01T00:00:00Z/PT1H', '2027-04-01T00:30:00Z/PT1H'] }, 'overlap'],
    [{ brownout: ['2027-04-01/soon'] }, 'not an ISO 8601 time'],
    [{ exemptions: [{ organizationId: 'acme' }] }, 'needs an end: add --until'],
    [{ exemptions: [{ keyId: 'k_1', until: '2027-01-01' }] }, 'ends in the past'],
    [{ successor: 'nowhere' }, 'is not an http(s) URL'],
    [{ afterSunset: 'explode' }, 'is neither serve nor gone'],
  ])('refuses %j with the reason', (flags, reason) => {
    expect(set({}, flags)).toEqual({ kind: 'refused', reasons: [expect.stringContaining(reason)] });
  });

  test('a window that has passed since it was set does not stand in the way of the next change', () => {
    const past = { brownouts: [window('2027-02-01T00:00:00Z', '2027-02-01T01:00:00Z')] };
    expect(set(past, { successor: 'https://kv.example/' })).toEqual({
      kind: 'edited',
      layer: { ...past, successorUrl: 'https://kv.example/' },
    });
  });
});

describe('deprecation clear', () => {
  const layer: PolicyLayer = {
    sunsetAt: at('2027-07-01T00:00:00Z'),
    successorUrl: 'https://kv.example/',
    brownouts: [
      window('2027-03-02T12:00:00Z', '2027-03-02T13:00:00Z'),
      window('2027-03-03T12:00:00Z', '2027-03-03T13:00:00Z'),
    ],
    exemptKeys: [{ keyId: 'k_1', until: at('2027-05-02T00:00:00Z') }],
  };

  test('removes only what is named, a window by its start or as it was set', () => {
    expect(clear(layer, { sunset: true, brownout: ['2027-03-02T12:00:00Z'], exemptKey: ['k_1'] })).toEqual({
      kind: 'edited',
      layer: { successorUrl: 'https://kv.example/', brownouts: layer.brownouts?.slice(1) },
    });
    expect(
      clear(layer, { brownout: ['2027-03-02T12:00:00Z/PT1H', '2027-03-03T12:00:00Z/PT1H'] }),
    ).toMatchObject({ kind: 'edited', layer: { sunsetAt: layer.sunsetAt } });
  });

  test('without a name removes everything the operator has set', () => {
    expect(clear(layer, {})).toEqual({ kind: 'edited', layer: {} });
  });

  test('refuses what is not set', () => {
    expect(clear(layer, { exemptOrg: ['acme'] })).toEqual({
      kind: 'refused',
      reasons: ['"acme" is not set: see deprecation show'],
    });
  });

  test('refuses to leave a sunset before the deprecation', () => {
    const early = { deprecatedAt: at('2026-01-01'), sunsetAt: at('2026-10-01') };
    expect(clear(early, { deprecatedAt: true })).toMatchObject({ kind: 'refused' });
  });
});

describe('what is stored', () => {
  test('comes back as it was', () => {
    const edited = set({}, { sunset: '2027-07-01', brownout: ['2027-04-01/P1D'] });
    const layer = edited.kind === 'edited' ? edited.layer : {};
    const stored = { version: 3, changedAt: NOW, layer };
    expect(readStored(writeStored(stored))).toEqual(stored);
  });

  test.each([
    'x',
    '[]',
    '{"version":1,"changedAt":0}',
    '{"version":1,"changedAt":0,"layer":{"sunsetAt":"2027"}}',
    '{"version":1,"changedAt":0,"layer":{"brownouts":[{"start":1}]}}',
    '{"version":1,"changedAt":0,"layer":{"successorUrl":"https://x\\r\\n@y:z"}}',
    '{"version":1,"changedAt":0,"layer":{"surprise":1}}',
  ])('is not believed when it is no policy: %s', (text) => {
    expect(readStored(text)).toBeUndefined();
  });
});

test('deprecation show prints phase, dates, windows and exemptions', () => {
  const policy = layerPolicy(...defaults, {
    sunsetAt: at('2027-03-11T00:00:00Z'),
    afterSunset: 'gone',
    documentationUrl: '/docs/',
    brownouts: [window('2027-03-01T11:00:00Z', '2027-03-01T13:00:00Z')],
    exemptOrganizations: [{ organizationId: 'acme', until: NOW }],
  });
  expect(policyLines(viewPolicy(policy, NOW), NOW).slice(0, 7)).toEqual([
    'phase          brownout',
    'deprecated at  2026-11-01T00:00:00Z',
    'sunset         2027-03-11T00:00:00Z (10 days from now), then gone',
    'successor      not set',
    'documentation  /docs/',
    'brownout       2027-03-01T11:00:00Z/2027-03-01T13:00:00Z (open)',
    'exempt         organization acme until 2027-03-01T12:00:00Z (over)',
  ]);
});
