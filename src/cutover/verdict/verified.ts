import type { RedisClient } from '../../redis/connection/client.ts';
import { cutoverKey } from '../../redis/keys.ts';

/**
 * Records that a verify of everything has found no difference to a snapshot that was opened so long ago, in ms. Where
 * no mode was ever stored there is no cut-over, and nothing is recorded.
 */
export async function recordVerified(client: RedisClient, prefix: string, ageMs: number): Promise<void> {
  const key = cutoverKey(prefix);
  if ((await client.hexists(key, 'mode')) === 0) return;
  const [seconds, microseconds] = await client.time();
  const now = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  await client.hset(key, 'verified', String(Math.floor(now - ageMs)));
}
