import type { PolicyLayer } from '../../../deprecation/policy/policy.ts';
import { formatInstant, formatInterval } from '../../../lib/iso8601.ts';

/**
 * The options of `deprecation set` that create this layer, for a POSIX shell. Brownouts and exemptions that are over at
 * `now` (ms) are left out, as they would be refused; undefined if nothing is left.
 */
export function setOptions(layer: PolicyLayer, now: number): string | undefined {
  const options: (readonly [flag: string, value: string | number | undefined])[] = [
    ['--deprecated-at', layer.deprecatedAt],
    ['--sunset', layer.sunsetAt],
    ['--successor', layer.successorUrl],
    ['--documentation', layer.documentationUrl],
    ['--after-sunset', layer.afterSunset],
    ...(layer.brownouts ?? [])
      .filter(({ end }) => end > now)
      .map((window) => ['--brownout', formatInterval(window)] as const),
    ...[...(layer.exemptOrganizations ?? []), ...(layer.exemptKeys ?? [])]
      .filter(({ until }) => until > now)
      .flatMap((exemption) => [
        'keyId' in exemption
          ? (['--exempt-key', exemption.keyId] as const)
          : (['--exempt-org', exemption.organizationId] as const),
        ['--until', exemption.until] as const,
      ]),
  ];
  const given = options.flatMap(([flag, value]) => {
    if (value === undefined) return [];
    return [`${flag} ${typeof value === 'number' ? formatInstant(value) : quoted(value)}`];
  });
  return given.length === 0 ? undefined : given.join(' ');
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) && !text.startsWith('-') ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
