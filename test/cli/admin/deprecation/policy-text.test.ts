import { execFileSync } from 'node:child_process';
import { describe, expect, test } from '@jest/globals';
import { formatSetOptions } from '../../../../src/cli/admin/deprecation/set-options.ts';
import { layerPolicy, type PolicyLayer } from '../../../../src/deprecation/policy/policy.ts';
import { policyLines } from '../../../../src/cli/admin/deprecation/policy-view.ts';

const at = (text: string) => Date.parse(text);
const now = at('2027-03-01T12:00:00Z');
const layer: PolicyLayer = {
  deprecatedAt: at('2026-11-01T00:00:00Z'),
  sunsetAt: at('2027-12-31T23:59:59Z'),
  afterSunset: 'gone',
  brownouts: [
    { start: at('2027-02-01T00:00:00Z'), end: at('2027-02-01T01:00:00Z') },
    { start: at('2027-03-01T11:30:00Z'), end: at('2027-03-01T12:30:00Z') },
  ],
  exemptions: [
    { organizationId: "O'Neil & co", until: at('2027-03-02T13:00:00Z') },
    { keyId: 'k_1', until: at('2027-02-20T00:00:00Z') },
  ],
};

test('deprecation show prints phase, dates, brownouts and exemptions', () => {
  const policy = layerPolicy({
    deprecatedAt: at('2026-11-01T00:00:00Z'),
    sunsetAt: at('2027-03-11T00:00:00Z'),
    afterSunset: 'gone',
    documentationUrl: '/docs/',
    sunsetUrl: 'https://example.com/when',
    brownouts: [{ start: at('2027-03-01T11:00:00Z'), end: at('2027-03-01T13:00:00Z') }],
    exemptions: [{ organizationId: 'acme', until: now }],
  });
  expect(policyLines(policy, now).slice(0, 8)).toEqual([
    'phase          brownout',
    'deprecated at  2026-11-01T00:00:00Z',
    'sunset         2027-03-11T00:00:00Z (in 10 days), then 410',
    'successor      not set',
    'documentation  /docs/',
    'sunset page    https://example.com/when',
    'brownout       2027-03-01T11:00:00Z/2027-03-01T13:00:00Z (open)',
    'exempt         organization "acme" until 2027-03-01T12:00:00Z (over)',
  ]);
});

test.each([
  [9000, 'in a moment'],
  [40 * 60_000, 'in 40 minutes'],
  [23 * 3_600_000, 'in 23 hours'],
])('deprecation show says how near a sunset in %i ms is', (ms, near) => {
  const lines = policyLines(layerPolicy({ sunsetAt: now + ms, afterSunset: 'gone' }), now);
  const when = new Date(now + ms).toISOString().replace('.000', '');
  expect(lines).toContain(`sunset         ${when} (${near}), then 410`);
  expect(lines.at(-1)).toBe(`  ${when}  sunset: gone from here on (${near})`);
});

test('deprecation show says that a sunset is past', () => {
  expect(policyLines(layerPolicy({ sunsetAt: now }), now)).toContain(
    'sunset         2027-03-01T12:00:00Z (past), then still served',
  );
});

describe("the policy's timeline", () => {
  test('has every date in order, with the current time among them', () => {
    const lines = policyLines(layerPolicy(layer), now);
    expect(lines.slice(lines.indexOf('') + 1)).toEqual([
      '  2026-11-01T00:00:00Z  deprecated (120 days ago)',
      '  2027-02-01T00:00:00Z  brownout until 2027-02-01T01:00:00Z (28 days ago)',
      '  2027-02-20T00:00:00Z  exemption of key k_1 ends (9 days ago)',
      '  2027-03-01T11:30:00Z  brownout until 2027-03-01T12:30:00Z (30 minutes ago)',
      '> 2027-03-01T12:00:00Z  now: brownout',
      '  2027-03-02T13:00:00Z  exemption of organization "O\'Neil & co" ends (in 25 hours)',
      '  2027-12-31T23:59:59Z  sunset: gone from here on (in 306 days)',
    ]);
  });

  test('is left out if the policy has no dates', () => {
    expect(policyLines(layerPolicy(), now)).not.toContain('');
  });
});

describe('the options of deprecation set that restore a policy', () => {
  test('name everything that is not over, quoted for a shell', () => {
    const text = formatSetOptions(layer, now);
    const words = execFileSync('sh', ['-c', `printf '%s\\n' ${text}`], { encoding: 'utf8' }).trim();
    expect(words.replaceAll('\n', ' ')).toBe(
      "--deprecated-at 2026-11-01T00:00:00Z --sunset 2027-12-31T23:59:59Z --after-sunset gone --brownout 2027-03-01T11:30:00Z/2027-03-01T12:30:00Z --exempt-org O'Neil & co --until 2027-03-02T13:00:00Z",
    );
  });

  test('are empty if nothing is set', () => {
    expect(formatSetOptions({}, now)).toBe('');
  });
});
