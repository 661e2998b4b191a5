import type { Parsed } from '../../lib/iso8601.ts';

const here = 'http://here.invalid';

/**
 * A link target in the normal form of the URL standard, in which nothing is left that could end a header line
 * or the angle brackets of a `Link` header: an http(s) URL without credentials, or a path on this service
 * (`/docs/`).
 */
export function parseLink(text: string): Parsed<string> {
  const isPath = text.startsWith('/');
  const url = URL.canParse(text, isPath ? here : undefined)
    ? new URL(text, isPath ? here : undefined)
    : undefined;
  const value = isPath ? url?.href.slice(here.length) : url?.href;
  const usable =
    url !== undefined &&
    value !== undefined &&
    /^https?:$/.test(url.protocol) &&
    url.username === '' &&
    url.password === '' &&
    // A path must not turn out to be another host's address.
    (!isPath || (url.origin === here && !value.startsWith('//')));
  return usable
    ? { kind: 'ok', value }
    : { kind: 'invalid', reason: `"${text}" is no link: write an http(s) URL without credentials` };
}
