import { describe, expect, test } from '@jest/globals';
import { readStored, toStored } from '../../../src/deprecation/policy/stored-layer.ts';

const at = (text: string) => Date.parse(text);
const NOW = at('2027-03-01T12:00:00Z');
const interval = (start: string, end: string) => ({ start: at(start), end: at(end) });

describe('a stored policy', () => {
  test('has a list of exemptions of each kind, and is read as it was stored', () => {
    const organization = { organizationId: 'acme', until: at('2027-05-01') };
    const key = { keyId: 'k_1', until: at('2027-05-02') };
    const settings = { sunsetAt: at('2027-07-01'), brownouts: [interval('2027-04-01', '2027-04-02')] };
    const policy = { version: 3, changedAt: NOW, layer: { ...settings, exemptions: [organization, key] } };
    const text = toStored(policy);
    expect(JSON.parse(text)).toEqual({
      version: 3,
      changedAt: NOW,
      layer: { ...settings, exemptOrganizations: [organization], exemptKeys: [key] },
    });
    expect(readStored(text)).toEqual(policy);
  });

  test.each([
    'x',
    '[]',
    '{"version":1,"changedAt":0}',
    '{"version":1,"changedAt":0,"layer":{"sunsetAt":"2027"}}',
    '{"version":1,"changedAt":0,"layer":{"brownouts":[{"start":1}]}}',
    '{"version":1,"changedAt":0,"layer":{"successorUrl":"https://x\\r\\n@y:z"}}',
    '{"version":1,"changedAt":0,"layer":{"surprise":1}}',
  ])('is not read from a text that is not a policy: %s', (text) => {
    expect(readStored(text)).toBeUndefined();
  });
});
