import { parseLink } from './links.ts';
import type { DeprecationPolicy } from './policy.ts';

export type Header = readonly [name: string, value: string];

/** The names of all headers that `deprecationHeaders` may give, for `Access-Control-Expose-Headers`. */
export const deprecationHeaderNames = ['Deprecation', 'Sunset', 'Link'] as const;

/**
 * The headers that every answer of the contract carries under this policy, to be computed once per policy:
 * `Deprecation` (RFC 9745 §2.1: a structured-field date), `Sunset` (RFC 8594 §3: an HTTP-date, left out where
 * it would precede the deprecation, RFC 9745 §4) and `Link` (RFC 8288 §3) to the deprecation document, the
 * sunset document and the successor.
 */
export function deprecationHeaders(policy: DeprecationPolicy): readonly Header[] {
  const { deprecatedAt, sunsetAt, documentationUrl, successorUrl } = policy;
  const headers: Header[] = [];
  if (deprecatedAt !== undefined) headers.push(['Deprecation', `@${Math.floor(deprecatedAt / 1000)}`]);
  if (sunsetAt !== undefined && (deprecatedAt === undefined || sunsetAt >= deprecatedAt)) {
    headers.push(['Sunset', new Date(sunsetAt).toUTCString()]);
  }
  const links = [
    link(documentationUrl, 'deprecation'),
    link(policy.sunsetUrl ?? documentationUrl, 'sunset'),
    link(successorUrl, 'successor-version'),
  ].filter((value) => value !== undefined);
  if (links.length > 0) headers.push(['Link', links.join(', ')]);
  return headers;
}

function link(url: string | undefined, rel: string): string | undefined {
  const target = url === undefined ? undefined : parseLink(url);
  return target?.kind === 'ok' ? `<${target.value}>; rel="${rel}"` : undefined;
}
