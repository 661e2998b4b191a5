import { parseLink } from './links.ts';
import type { DeprecationPolicy } from './policy.ts';

/** The names of all headers that `deprecationHeaders` may give, for `Access-Control-Expose-Headers`. */
export const deprecationHeaderNames = ['Deprecation', 'Sunset', 'Link'] as const;

/**
 * The headers that every answer of the contract carries under this policy, to be computed once per policy:
 * `Deprecation` (RFC 9745 §2.1: a structured-field date), `Sunset` (RFC 8594 §3: an HTTP-date, left out if it would
 * precede the deprecation, RFC 9745 §4) and `Link` (RFC 8288 §3) to the deprecation document, the sunset document and
 * the successor. Links to a path of this service begin with `baseUrl`.
 */
export function deprecationHeaders(policy: DeprecationPolicy, baseUrl = ''): readonly string[] {
  const { deprecatedAt, sunsetAt, documentationUrl, successorUrl, sunsetUrl = documentationUrl } = policy;
  const headers: string[] = [];
  if (deprecatedAt !== undefined) headers.push('Deprecation', `@${Math.floor(deprecatedAt / 1000)}`);
  if (sunsetAt !== undefined && (deprecatedAt === undefined || sunsetAt >= deprecatedAt)) {
    headers.push('Sunset', new Date(sunsetAt).toUTCString());
  }
  const links = [
    [documentationUrl, 'deprecation'],
    [sunsetUrl, 'sunset'],
    [successorUrl, 'successor-version'],
  ].flatMap(([url, rel]) => {
    const target = parseLink(url ?? '');
    if (target.kind === 'invalid') return [];
    return [`<${target.value.startsWith('/') ? baseUrl : ''}${target.value}>; rel="${rel}"`];
  });
  if (links.length > 0) headers.push('Link', links.join(', '));
  return headers;
}
