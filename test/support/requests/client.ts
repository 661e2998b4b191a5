import { request as httpRequest, type IncomingMessage } from 'node:http';
import { assertDocumented, type Answer } from './conformance.ts';

/** Whose requests a client sends. Left out, the header is not sent. */
export interface Credentials {
  organization?: string;
  apiKey?: string;
  /** The configured name of the organization header. */
  organizationHeader?: string;
}

/** At most one of `json`, `form` and `body`. */
interface RequestOptions {
  /** Sent besides the credentials and over them; undefined leaves a header out. */
  headers?: Record<string, string | string[] | undefined>;
  json?: unknown;
  form?: FormData;
  /** Sent as it is, for bodies no serializer would make. JSON unless `headers` says otherwise. */
  body?: string | Buffer;
}

export type { Answer };

export interface Client {
  /**
   * Sends one request; `path` goes out as it is. Throws when the answer is not documented in openapi.yaml: path,
   * status, content type, body, or headers (missing, malformed or undocumented).
   */
  request: (method: string, path: string, options?: RequestOptions) => Promise<Answer>;
}

/** Only a request that hangs takes so long, on the slowest machine too. */
const longestMs = 120_000;

/** A client that checks every answer against the contract. */
export function createClient(baseUrl: string, credentials: Credentials = {}): Client {
  const { organization, apiKey, organizationHeader = 'x-platform-organization-id' } = credentials;
  return {
    request: async (method, path, options = {}) => {
      const { body, type } = await encode(options);
      const answer = await send(baseUrl, method, path, body, {
        'x-api-key': apiKey,
        // Header text travels as Latin-1; the contract's is UTF-8.
        [organizationHeader]:
          organization === undefined ? undefined : Buffer.from(organization).toString('latin1'),
        'content-type': type,
        ...(body !== undefined && { 'content-length': String(body.length) }),
        ...Object.fromEntries(
          Object.entries(options.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
        ),
      });
      assertDocumented(method, path, answer);
      return answer;
    },
  };
}

async function encode({ json, form, body }: RequestOptions): Promise<{ body?: Buffer; type?: string }> {
  if (json !== undefined) return { body: Buffer.from(JSON.stringify(json)), type: 'application/json' };
  if (body !== undefined) return { body: Buffer.from(body), type: 'application/json' };
  if (form === undefined) return {};
  const encoded = new Response(form);
  const type = encoded.headers.get('content-type');
  return { body: Buffer.from(await encoded.arrayBuffer()), ...(type !== null && { type }) };
}

function send(
  baseUrl: string,
  method: string,
  path: string,
  body: Buffer | undefined,
  headers: Record<string, string | string[] | undefined>,
): Promise<Answer> {
  const { hostname, port } = new URL(baseUrl);
  const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
  return new Promise((resolve, reject) => {
    let answered = false;
    const sent = httpRequest(
      { hostname, port, method, path, headers: given, signal: AbortSignal.timeout(longestMs) },
      (incoming) => {
        answered = true;
        receive(incoming).then(resolve, reject);
      },
    );
    // A server may answer and disconnect before it has read the whole body; only the answer matters.
    sent.on('error', (error) => {
      if (!answered) reject(error);
    });
    sent.end(body);
  });
}

async function receive(incoming: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  const text = bytes.toString('utf8');
  const headers = Object.fromEntries(
    Object.entries(incoming.headersDistinct).map(([name, values]) => [name, (values ?? []).join(', ')]),
  );
  const isJson = /^application\/(problem\+)?json\b/.test(headers['content-type'] ?? '');
  const body: unknown = isJson && bytes.length > 0 ? JSON.parse(text) : undefined;
  return { status: incoming.statusCode ?? 0, headers, body, text, bytes };
}
