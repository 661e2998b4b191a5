import type { Parsed } from '../../lib/iso8601.ts';

const here = 'http://here.invalid';

/**
 * Reads a link target: an http(s) URL without credentials, or a path on this service (`/docs/`). The value is in the
 * normal form of the URL standard, which has no character that could end a header line or the angle brackets of a
 * `Link` header.
 */
export function parseLink(text: string): Parsed<string> {
  const isPath = text.startsWith('/');
  const base = isPath ? here : undefined;
  if (URL.canParse(text, base)) {
    const { protocol, username, password, origin, href } = new URL(text, base);
    const value = isPath ? href.slice(here.length) : href;
    // "//host/" and the like would lead to another host.
    const isOwnPath = origin === here && !value.startsWith('//');
    const isHttp = /^https?:$/.test(protocol) && username === '' && password === '';
    if (isHttp && (!isPath || isOwnPath)) return { kind: 'ok', value };
  }
  return { kind: 'invalid', reason: `"${text}" is not an http(s) URL without credentials` };
}
