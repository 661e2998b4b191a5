import { randomBytes } from 'node:crypto';
import { chooseRedis } from './choose-redis.ts';

/** One Redis for the whole run; its address reaches the test files as TEST_REDIS_URL. */
export default async function globalSetup(): Promise<void> {
  process.env['PB_TEST_RUN'] = randomBytes(4).toString('hex');
  const chosen = await chooseRedis(process.env);
  process.stdout.write(`\ntest Redis: ${chosen.told}\n`);
  process.env['TEST_REDIS_URL'] = chosen.url;
  (globalThis as { stopTestRedis?: () => Promise<void> }).stopTestRedis = chosen.stop;
}
