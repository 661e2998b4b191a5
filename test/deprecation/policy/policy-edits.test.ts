import { describe, expect, test } from '@jest/globals';
import { formatInterval } from '../../../src/lib/iso8601.ts';
import { clearInLayer, setInLayer, type Removals } from '../../../src/deprecation/policy/policy-edits.ts';
import type { PolicyLayer } from '../../../src/deprecation/policy/policy.ts';

const at = (text: string) => Date.parse(text);
const NOW = at('2027-03-01T12:00:00Z');
const defaults: PolicyLayer[] = [{ deprecatedAt: at('2026-11-01T00:00:00Z') }];
const set = (layer: PolicyLayer, given: PolicyLayer) => setInLayer(given)(layer, defaults, NOW);
const clear = (layer: PolicyLayer, removals: Removals) => clearInLayer(removals)(layer, defaults, NOW);
const interval = (start: string, end: string) => ({ start: at(start), end: at(end) });
const hour = (start: string) => ({ start: at(start), end: at(start) + 3_600_000 });

describe('setting', () => {
  test('replaces dates and links, and adds brownouts and exemptions', () => {
    const before: PolicyLayer = {
      sunsetAt: at('2027-06-01T00:00:00Z'),
      brownouts: [hour('2027-03-02T12:00:00Z')],
      exemptions: [{ organizationId: 'acme', until: at('2027-04-01') }],
    };
    const given: PolicyLayer = {
      sunsetAt: at('2027-07-01'),
      brownouts: [interval('2027-03-01T12:00:00Z', '2027-03-01T12:30:00Z')],
      exemptions: [
        { organizationId: 'acme', until: at('2027-05-01') },
        { keyId: 'k_1', until: at('2027-05-02') },
      ],
    };
    expect(set(before, given)).toEqual({
      kind: 'edited',
      layer: { ...given, brownouts: [...(before.brownouts ?? []), ...(given.brownouts ?? [])] },
    });
  });

  test.each(['2027-04-01T00:00:00Z', '2027-02-01T00:00:00Z'])(
    'a brownout that is already set changes nothing: %s',
    (start) => {
      const layer = { brownouts: [hour(start)], exemptions: [] };
      expect(set(layer, { brownouts: [hour(start)] })).toEqual({ kind: 'edited', layer });
    },
  );

  test('a brownout may begin within one that is over', () => {
    const over = { brownouts: [interval('2027-03-01T10:00:00Z', '2027-03-01T11:00:00Z')] };
    const next = { brownouts: [interval('2027-03-01T10:30:00Z', '2027-03-01T13:00:00Z')] };
    expect(set(over, next)).toMatchObject({ kind: 'edited' });
  });

  test('refuses a sunset before the deprecation of a lower layer', () => {
    expect(set({}, { sunsetAt: at('2026-10-01') })).toEqual({
      kind: 'refused',
      reasons: ['the sunset (2026-10-01T00:00:00Z) is before the deprecation (2026-11-01T00:00:00Z)'],
    });
  });

  test.each<[PolicyLayer, string]>([
    [{ brownouts: [hour('2027-02-01T00:00:00Z')] }, 'is wholly in the past'],
    [{ brownouts: [hour('2027-04-01T00:00:00Z'), hour('2027-04-01T00:30:00Z')] }, 'overlap'],
    [{ exemptions: [{ keyId: 'k_1', until: at('2027-01-01') }] }, 'of key k_1 ends in the past'],
    [{ exemptions: [{ organizationId: 'acme', until: NOW }] }, 'of organization "acme" ends in the past'],
  ])('refuses %j with the reason', (given, reason) => {
    expect(set({}, given)).toEqual({ kind: 'refused', reasons: [expect.stringContaining(reason)] });
  });

  test('a brownout that has passed since it was set does not prevent the next change', () => {
    const past = { brownouts: [hour('2027-02-01T00:00:00Z')], exemptions: [] };
    expect(set(past, { successorUrl: 'https://kv.example/' })).toEqual({
      kind: 'edited',
      layer: { ...past, successorUrl: 'https://kv.example/' },
    });
  });
});

describe('clearing', () => {
  const layer: PolicyLayer = {
    sunsetAt: at('2027-07-01T00:00:00Z'),
    successorUrl: 'https://kv.example/',
    brownouts: [hour('2027-03-02T12:00:00Z'), hour('2027-03-03T12:00:00Z')],
    exemptions: [{ keyId: 'k_1', until: at('2027-05-02T00:00:00Z') }],
  };

  test('removes only what is named, a brownout by its start or as a whole', () => {
    expect(
      clear(layer, {
        settings: ['sunsetAt'],
        brownouts: ['2027-03-02T12:00:00Z'],
        exemptions: [{ keyId: 'k_1' }],
      }),
    ).toEqual({
      kind: 'edited',
      layer: {
        successorUrl: 'https://kv.example/',
        brownouts: layer.brownouts?.slice(1),
        exemptions: [],
      },
    });
    const names = (layer.brownouts ?? []).map(formatInterval);
    expect(clear(layer, { brownouts: names })).toEqual({
      kind: 'edited',
      layer: { ...layer, brownouts: [] },
    });
  });

  test('refuses to remove an exemption that is not set', () => {
    expect(clear(layer, { exemptions: [{ organizationId: 'acme' }] })).toEqual({
      kind: 'refused',
      reasons: ['the exemption of organization "acme" is not set: see profile-bridge admin deprecation show'],
    });
  });

  test('refuses to leave a sunset before the deprecation', () => {
    const early = { deprecatedAt: at('2026-01-01'), sunsetAt: at('2026-10-01') };
    expect(clear(early, { settings: ['deprecatedAt'] })).toMatchObject({ kind: 'refused' });
  });
});

describe('a contradiction that is there already, as since the environment was changed', () => {
  const open = interval('2027-03-01T11:00:00Z', '2027-03-01T13:00:00Z');
  const layer: PolicyLayer = { deprecatedAt: at('2027-04-01'), brownouts: [open], exemptions: [] };
  const contradicting: PolicyLayer[] = [{ sunsetAt: at('2027-03-20') }];

  test('keeps nobody from ending a brownout, or from exempting a client', () => {
    const ended = clearInLayer({ brownouts: [formatInterval(open)] })(layer, contradicting, NOW);
    expect(ended).toEqual({ kind: 'edited', layer: { ...layer, brownouts: [] } });
    const exemptions = [{ organizationId: 'acme', until: at('2027-05-01') }];
    const exempted = setInLayer({ exemptions })(layer, contradicting, NOW);
    expect(exempted).toEqual({ kind: 'edited', layer: { ...layer, exemptions } });
  });

  test('is no excuse for another one', () => {
    const brownouts = [hour('2027-03-01T12:30:00Z')];
    expect(setInLayer({ brownouts, sunsetAt: at('2027-03-10') })(layer, contradicting, NOW)).toEqual({
      kind: 'refused',
      reasons: [
        'the sunset (2027-03-10T00:00:00Z) is before the deprecation (2027-04-01T00:00:00Z)',
        expect.stringContaining('overlap'),
      ],
    });
  });
});
