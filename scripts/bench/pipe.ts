import { spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { encodeReference } from '../../src/domain/profile.ts';
import { namesBucketKey, profileKey, settingsKey } from '../../src/redis/keys.ts';
import { avatar, baseOf, pictureUrl, userId, wallet } from './load/seed.ts';

/** Which profiles to load: the same number of each organization. */
export interface Crowd {
  organizations: readonly string[];
  profilesEach: number;
}

/** About how many buckets an index of this many names has when it has grown by itself. */
export function bucketsFor(names: number): number {
  return Math.ceil(names / 36);
}

/** The bucket of a name, given their number, as in src/redis/lua/lib/names.lua. */
export function bucketOf(name: string, buckets: number): string {
  const place = Number.parseInt(hash('sha1', name).slice(0, 8), 16);
  const range = 2 ** Math.ceil(Math.log2(buckets));
  const number = place % range;
  return String(number < buckets ? number : place % (range / 2));
}

/**
 * Loads profiles by `redis-cli --pipe`, in the very keys that lua/profile/put.lua leaves: a hash of a name, a picture
 * URL, an avatar by reference, a wallet and a time, and its entry in the name index.
 */
export async function pipeProfiles(port: number, { organizations, profilesEach }: Crowd): Promise<void> {
  const cli = spawn('redis-cli', ['-p', String(port), '--pipe'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(cli, 'exit');
  let said = '';
  cli.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const reference = encodeReference(avatar);
  const buckets = bucketsFor(profilesEach);
  for (const organization of organizations) {
    const base = baseOf(organization);
    cli.stdin.write(command('HSET', settingsKey(base), 'n0', String(buckets)));
    for (let from = 0; from < profilesEach; from += 1000) {
      let text = '';
      for (let user = from; user < Math.min(from + 1000, profilesEach); user++) {
        const id = userId(user);
        const name = longNameOf(user);
        text += command('HSET', profileKey(base, id), 't', '1780000000000', 'u', name);
        text += command('HSET', profileKey(base, id), 'ar', reference, 'pu', pictureUrl, 'w', wallet);
        text += command('HSET', namesBucketKey(base, '0', bucketOf(name, buckets)), name, id);
      }
      if (!cli.stdin.write(text)) await once(cli.stdin, 'drain');
    }
  }
  cli.stdin.end();
  await exited;
  if (!said.includes('errors: 0,')) throw new Error(`redis-cli --pipe: ${said}`);
}

/** The name of user number `user` among millions. */
export function longNameOf(user: number): string {
  return `player-${String(user).padStart(7, '0')}`;
}

/** A command in Redis' protocol. */
export function command(...parts: string[]): string {
  let text = `*${parts.length}\r\n`;
  for (const part of parts) text += `$${Buffer.byteLength(part)}\r\n${part}\r\n`;
  return text;
}
