import { pairsOf } from '../../lib/collections/pairs.ts';

/** Headers that concern one connection only (RFC 9110 §7.6.1), and those between two adjacent hops. */
const hopByHop = new Set([
  'connection',
  'expect',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Headers that the bridge sets on every response itself, and those that would lead clients around it. */
const ownInResponses = new Set(['alt-svc', 'cache-control', 'deprecation', 'sunset', 'x-request-id']);

/** The relations of the links that the bridge sets by its own policy. */
const ownRelations = new Set(['deprecation', 'sunset', 'successor-version']);

export interface RequestContext {
  requestId: string;
  address: string | undefined;
  /** The length of the body that is sent along; undefined for none. */
  bodyBytes: number | undefined;
}

/** Headers as a flat list: a name, its value, the next name … */
type RawHeaders = readonly string[];

/** The headers of a request as the legacy service gets them, with `X-Forwarded-For`. */
export function requestHeaders(raw: RawHeaders, context: RequestContext): string[] {
  const replaced = ['content-length', 'host', 'x-forwarded-for', 'x-request-id'];
  const dropped = new Set([...hopByHop, ...namedByConnection(raw), ...replaced]);
  const forwardedFor = valuesOf(raw, 'x-forwarded-for');
  if (context.bodyBytes === undefined) dropped.add('content-type').add('content-encoding');
  const headers = without(raw, dropped);
  if (context.address !== undefined) forwardedFor.push(context.address);
  if (forwardedFor.length > 0) headers.push('x-forwarded-for', forwardedFor.join(', '));
  headers.push('x-request-id', context.requestId);
  if (context.bodyBytes !== undefined) headers.push('content-length', String(context.bodyBytes));
  return headers;
}

/**
 * The headers of a response as the client gets them, without caching, deprecation and CORS, which the bridge decides.
 */
export function responseHeaders(raw: RawHeaders): string[] {
  const dropped = new Set([...hopByHop, ...namedByConnection(raw), ...ownInResponses]);
  return pairsOf(without(raw, dropped)).flatMap(([name, value]) => {
    if (/^access-control-/i.test(name)) return [];
    if (name.toLowerCase() !== 'link') return [name, value];
    const links = value.match(/(?:<[^<>]*>|"(?:\\.|[^"\\])*"|[^,])+/g) ?? [];
    const others = links.flatMap(withoutOwnRelations);
    return others.length === 0 ? [] : [name, others.join(', ')];
  });
}

/** A link (RFC 8288 §3) without the relations that are the bridge's to give; none if it has no others. */
function withoutOwnRelations(link: string): string[] {
  const [, before = '', relations = '', after = ''] =
    /^(.*?;\s*rel\s*=\s*)("[^"]*"|[^\s;"]+)(.*)$/i.exec(link.trim()) ?? [];
  const all = relations.replaceAll('"', '').split(/\s+/);
  const kept = all.filter((relation) => !ownRelations.has(relation.toLowerCase()));
  if (kept.length === all.length) return [link.trim()];
  return kept.length === 0 ? [] : [`${before}"${kept.join(' ')}"${after}`];
}

/** The names that a `Connection` header declares to concern the connection only. */
function namedByConnection(raw: RawHeaders): string[] {
  return valuesOf(raw, 'connection').flatMap((value) => value.toLowerCase().split(/[\s,]+/));
}

/** Whether a request is sent as a form, as a change with a picture is (contract 4.2). */
export function isMultipart(raw: RawHeaders): boolean {
  return valuesOf(raw, 'content-type').some((type) => /^\s*multipart\//i.test(type));
}

/** All values under a name, which is given in lower case. */
export function valuesOf(raw: RawHeaders, name: string): string[] {
  return raw.filter((_value, position) => position % 2 === 1 && raw[position - 1]?.toLowerCase() === name);
}

/** All but those under these names, which are given in lower case. */
export function without(raw: RawHeaders, names: ReadonlySet<string>): string[] {
  return raw.filter((_part, position) => !names.has((raw[position - (position % 2)] ?? '').toLowerCase()));
}
