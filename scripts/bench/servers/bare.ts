// The limit: what node:http and one command of ioredis cost, without the bridge. GET is one HMGET; a username change
// and a ban are one call of the bridge's own script. No authentication, no validation.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Redis } from 'ioredis';
import { profileKey } from '../../../src/redis/keys.ts';
import { baseOf, playerKey, userId } from '../load/seed.ts';
import { listenForBench, sendJson } from './http.ts';
import { script } from '../../../src/redis/connection/script-loader.ts';

const putProfile = script<(string | number)[], { kind: string }>('profile/put');
const banUsernames = script<(string | number)[], [string]>('denylist/ban');

const store = new Redis(process.env['REDIS_URL'] ?? '', { enableAutoPipelining: true });
const base = baseOf('bare');
const idStart = playerKey.indexOf('{');
const names = new Map<string, string>();

function userOf(request: IncomingMessage): string {
  return userId(Number(String(request.headers['x-api-key']).slice(idStart)));
}

async function get(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [username, profilePictureUrl, reference, evmLinkedWalletAddress] = await store.hmget(
    profileKey(base, userOf(request)),
    'u',
    'pu',
    'ar',
    'w',
  );
  const [datasourceId, objectDefinitionId] = (reference ?? '').split('\n');
  const avatar = { datasourceId, objectDefinitionId };
  sendJson(response, 200, JSON.stringify({ username, profilePictureUrl, avatar, evmLinkedWalletAddress }));
}

async function rename(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { username } = (await read(request)) as { username: string };
  const user = userOf(request);
  const from = names.get(user) ?? (await store.hget(profileKey(base, user), 'u')) ?? '';
  const nothing = ['keep', '', 'keep', ''];
  const reply = await putProfile(store, base, 0, '0', user, from, username, username, from, ...nothing);
  const isPut = reply.kind === 'put';
  if (isPut) names.set(user, username);
  sendJson(response, isPut ? 200 : 500, JSON.stringify({ username }));
}

async function ban(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const entries = Object.entries((await read(request)) as Record<string, string>);
  const values = entries.flatMap(([name, replacement]) => [name, name, replacement, replacement]);
  const reply = await banUsernames(store, base, 0, '0', 'k_admin', ...values);
  sendJson(response, reply[0] === 'banned' ? 204 : 500, '');
}

async function read(request: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return JSON.parse(text);
}

const handlers = { GET: get, PUT: rename, POST: ban };
listenForBench((request, response) => {
  handlers[request.method as keyof typeof handlers](request, response).catch(() =>
    sendJson(response, 500, ''),
  );
});
