import { expect, test } from '@jest/globals';
import { checkRequirements } from '../../../src/redis/connection/requirements.ts';

/** As servers answer INFO. */
const info = (facts: Record<string, string>): string =>
  ['# Server', ...Object.entries(facts).map(([name, value]) => `${name}:${value}`), ''].join('\r\n');
const good = {
  redis_version: '7.0.15',
  redis_mode: 'standalone',
  role: 'master',
  maxmemory_policy: 'noeviction',
};
const expected = { cluster: false, allowEviction: false };

test.each([
  { redis_version: '6.2.14' },
  { redis_version: '5.0.7' },
  { redis_version: '' },
  { redis_version: '7.2.4', valkey_version: '7.1.0' },
])('a server older than Redis 7.0 or Valkey 7.2 is refused with the remedy: %j', (facts) => {
  expect(checkRequirements(info({ ...good, ...facts }), 'redis://h', expected)).toMatch(
    /^redis:\/\/h is .*: upgrade it to Redis 7\.0, Valkey 7\.2 or newer$/,
  );
});

test.each([
  {},
  { redis_version: '7.4.0' },
  { redis_version: '8.2.1' },
  { redis_version: '10.0.0' },
  { redis_version: '7.2.4', valkey_version: '7.2.5' },
  { redis_version: '7.2.4', valkey_version: '8.1.0' },
])('a server of Redis 7.0, Valkey 7.2 or newer is accepted: %j', (facts) => {
  expect(checkRequirements(info({ ...good, ...facts }), 'redis://h', expected)).toBeUndefined();
});

test('a replica is refused; in a cluster it is one that a failover has just made', () => {
  const replica = info({ ...good, role: 'slave', master_host: 'm', master_port: '1' });
  expect(checkRequirements(replica, 'h', expected)).toMatch(/set REDIS_URL to its master \(m:1\)$/);
  expect(checkRequirements(replica, 'h', { ...expected, cluster: true })).toMatch(/try again$/);
});
