import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { operate, type LegacyKey, type Received } from './operations.ts';
import { LegacyOrganization } from './organization.ts';

/** How the service behaves from now on. A test changes it between requests. */
interface Behaviour {
  /** How long it takes for each response, in ms. */
  delayMs: number;
  /** How long GET shows a profile as it was before a change, in ms. */
  lagMs: number;
  /** Responds with this status, having done nothing; a function chooses by the request. */
  failWith: number | ((request: Received) => number | undefined) | undefined;
  /** Resets the connection, before the request takes effect or after. */
  reset: 'before' | 'after' | undefined;
  /** Sends only the first half of each response, then resets the connection. */
  cutOff: boolean;
  /** Compresses its responses. */
  gzip: boolean;
  /** Sends this in place of the response to a method, by default a 200 to GET. */
  override: Override | undefined;
  /** Answers to changes have no body. */
  bare: boolean;
  /** Holds requests until the promise resolves; a function chooses by the request. */
  gate: Promise<unknown> | ((request: Received) => Promise<unknown> | undefined) | undefined;
  /** Holds responses, after the requests have taken effect. */
  answerGate: Promise<unknown> | undefined;
}

interface Override {
  method?: string;
  status?: number;
  headers: Record<string, string | string[]>;
  chunks: Iterable<Buffer> | AsyncIterable<Buffer>;
}

export interface Legacy {
  /** The address to set as LEGACY_BASE_URL; it ends with the path prefix, if there is one. */
  url: string;
  behaviour: Behaviour;
  /** What arrived, oldest first; only while `recording`. */
  received: Received[];
  organization: (id: string) => LegacyOrganization;
  addKey: (apiKey: string, key: LegacyKey) => void;
  close: () => Promise<void>;
}

/**
 * Starts a stand-in for the legacy service: the contract's five operations over a store of its own, with distinctive
 * errors and JSON spacing, so that its responses are recognizable.
 */
export async function startLegacy({ port = 0, prefix = '', recording = true } = {}): Promise<Legacy> {
  const organizations = new Map<string, LegacyOrganization>();
  const keys = new Map<string, LegacyKey>();
  const received: Received[] = [];
  const behaviour: Behaviour = {
    delayMs: 0,
    lagMs: 0,
    failWith: undefined,
    reset: undefined,
    cutOff: false,
    gzip: false,
    override: undefined,
    bare: false,
    gate: undefined,
    answerGate: undefined,
  };
  let url = '';

  const organization = (id: string): LegacyOrganization => {
    let found = organizations.get(id);
    if (found === undefined) organizations.set(id, (found = new LegacyOrganization(() => url)));
    return found;
  };

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readAll(request);
    const { method = '', url: path = '', rawHeaders, headers } = request;
    const arrived: Received = { method, url: path, rawHeaders, headers, body };
    if (recording) received.push(arrived);
    const { gate } = behaviour;
    await (typeof gate === 'function' ? gate(arrived) : gate);
    if (behaviour.delayMs > 0) await sleep(behaviour.delayMs);
    if (behaviour.reset === 'before') return void request.socket.resetAndDestroy();
    const { failWith } = behaviour;
    const failure = typeof failWith === 'function' ? failWith(arrived) : failWith;
    if (failure !== undefined) return send(response, failure, { oops: 'legacy is out of order' });
    const { override } = behaviour;
    if (override !== undefined && method === (override.method ?? 'GET')) {
      response.writeHead(override.status ?? 200, override.headers);
      // A client that leaves ends it early.
      await pipeline(Readable.from(override.chunks), response).catch(() => {});
      return;
    }
    const reply = await operate({ keys, organization }, arrived, path.slice(prefix.length), behaviour.lagMs);
    if (behaviour.answerGate !== undefined) await behaviour.answerGate;
    if (behaviour.reset === 'after') return void request.socket.resetAndDestroy();
    send(response, reply.status, behaviour.bare && method !== 'GET' ? undefined : reply.answer);
  }

  function send(response: ServerResponse, status: number, answer: unknown): void {
    if (answer === undefined) return void response.writeHead(status, { 'x-powered-by': 'legacy' }).end();
    // The spacing is recognizable, and no serializer's default.
    let bytes = Buffer.from(JSON.stringify(answer, null, 3));
    const type = 'application/json;charset=UTF-8';
    const headers: Record<string, string | number> = { 'content-type': type, 'x-powered-by': 'legacy' };
    if (behaviour.gzip) {
      bytes = gzipSync(bytes);
      headers['content-encoding'] = 'gzip';
    }
    response.writeHead(status, { ...headers, 'content-length': bytes.length });
    if (!behaviour.cutOff) return void response.end(bytes);
    response.write(bytes.subarray(0, bytes.length / 2), () => response.socket?.resetAndDestroy());
  }

  const server = createServer((request, response) => {
    respond(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the legacy service has no port');
  url = `http://127.0.0.1:${address.port}${prefix}`;
  return {
    url,
    behaviour,
    received,
    organization,
    addKey: (apiKey, key) => void keys.set(apiKey, key),
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
