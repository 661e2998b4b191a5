import { spawn, type ChildProcess } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { encodeReference } from '../../src/domain/profile.ts';
import { namesBucketKey, profileKey, settingsKey } from '../../src/redis/keys.ts';
import { avatar, baseOf, pictureUrl, userId, wallet } from './load/seed.ts';

/** When all profiles were last changed. */
export const changedAt = 1_767_323_045_678;

/** About how many buckets an index of this many names has when it has grown by itself. */
export function bucketsFor(names: number): number {
  return Math.ceil(names / 36);
}

/** The bucket of a name, given their number, as in src/redis/lua/lib/names.lua. */
export function bucketOf(name: string, buckets: number): string {
  const bits = Number.parseInt(hash('sha1', name).slice(0, 8), 16);
  const range = 2 ** Math.ceil(Math.log2(buckets));
  const number = bits % range;
  return String(number < buckets ? number : bits % (range / 2));
}

/**
 * The profiles of an organization as commands in Redis' protocol, in the very keys that lua/profile/put.lua leaves: a
 * hash of a name, a picture URL, an avatar by reference, a wallet and a time, and its entry in the name index.
 */
export function* profileCommands(organization: string, count: number): Generator<string, void> {
  const base = baseOf(organization);
  const buckets = bucketsFor(count);
  const rest = ['pu', pictureUrl, 'ar', encodeReference(avatar), 'w', wallet, 't', String(changedAt)];
  yield command('HSET', settingsKey(base), 'n0', String(buckets));
  for (let user = 0; user < count; user++) {
    const [id, name] = [userId(user), longNameOf(user)];
    yield command('HSET', profileKey(base, id), 'u', name, ...rest);
    yield command('HSET', namesBucketKey(base, '0', bucketOf(name, buckets)), name, id);
  }
}

/** Texts joined to about a megabyte each. */
export function* inBlocks(texts: Iterable<string>): Generator<string, void> {
  let block = '';
  for (const text of texts) {
    block += text;
    if (block.length < 1_000_000) continue;
    yield block;
    block = '';
  }
  yield block;
}

/** Loads commands by `redis-cli --pipe`; how many seconds that took. */
export async function pipeCommands(redisUrl: string, commands: Readable): Promise<number> {
  const startedAt = performance.now();
  const cli = spawn('redis-cli', ['-u', redisUrl, '--pipe'], { stdio: ['pipe', 'ignore', 'inherit'] });
  commands.pipe(cli.stdin);
  await succeed(cli, 'redis-cli --pipe');
  return (performance.now() - startedAt) / 1000;
}

/** Resolves once the program has ended; rejects unless with exit code 0. */
export async function succeed(child: ChildProcess, what: string): Promise<void> {
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${what} ended with ${code}`);
}

/** The name of user number `user` among millions. */
export function longNameOf(user: number): string {
  return `player-${String(user).padStart(7, '0')}`;
}

/** A command in Redis' protocol. */
function command(...parts: string[]): string {
  let text = `*${parts.length}\r\n`;
  for (const part of parts) text += `$${Buffer.byteLength(part)}\r\n${part}\r\n`;
  return text;
}
