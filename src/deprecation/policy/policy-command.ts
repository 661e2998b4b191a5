import { formatInstant, formatWindow } from '../../lib/iso8601.ts';
import type { PolicyLayer } from './policy.ts';

/**
 * The arguments of `admin deprecation set` that make this layer again, for a POSIX shell. Windows and exemptions
 * that are over at `now` (ms) are left out, as they would be refused; undefined where nothing is left.
 */
export function setArguments(layer: PolicyLayer, now: number): string | undefined {
  const time = (ms: number | undefined) => (ms === undefined ? undefined : formatInstant(ms));
  const flags: (readonly [flag: string, value: string | undefined])[] = [
    ['--deprecated-at', time(layer.deprecatedAt)],
    ['--sunset', time(layer.sunsetAt)],
    ['--successor', layer.successorUrl],
    ['--documentation', layer.documentationUrl],
    ['--after-sunset', layer.afterSunset],
    ...(layer.brownouts ?? [])
      .filter(({ end }) => end > now)
      .map((window) => ['--brownout', formatWindow(window)] as const),
    ...(layer.exemptOrganizations ?? [])
      .filter(({ until }) => until > now)
      .flatMap(({ organizationId, until }) => [
        ['--exempt-org', organizationId] as const,
        ['--until', time(until)] as const,
      ]),
    ...(layer.exemptKeys ?? [])
      .filter(({ until }) => until > now)
      .flatMap(({ keyId, until }) => [['--exempt-key', keyId] as const, ['--until', time(until)] as const]),
  ];
  const given = flags.flatMap(([flag, value]) => (value === undefined ? [] : [`${flag} ${quoted(value)}`]));
  return given.length === 0 ? undefined : given.join(' ');
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) && !text.startsWith('-') ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
