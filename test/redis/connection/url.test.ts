import { expect, test } from '@jest/globals';
import { parseRedisUrl } from '../../../src/redis/connection/url.ts';

const h6379 = { host: 'h', port: 6379 };

test.each([
  ['redis://h', { kind: 'single', tls: false, at: h6379, display: 'redis://h' }],
  ['redis://u:p@h/0', { username: 'u', password: 'p', display: 'redis://h/0' }],
  ['redis://:a@b/c%2F?d@h', { password: 'a@b/c/?d', at: h6379 }],
  ['REDISS://[::1]:7', { kind: 'single', tls: true, at: { host: '::1', port: 7 } }],
  ['redis+cluster://h,g:7', { kind: 'cluster', nodes: [h6379, { host: 'g', port: 7 }] }],
  [
    'rediss+sentinel://h/main',
    { kind: 'sentinel', tls: true, nodes: [{ host: 'h', port: 26379 }], name: 'main' },
  ],
  [
    'redis+sentinel://:p@h/main?sentinelUsername=su&sentinelPassword=s@h%26+=',
    { password: 'p', name: 'main', sentinelUsername: 'su', sentinelPassword: 's@h&+=' },
  ],
  ['unix:///a%20b', { kind: 'socket', path: '/a b' }],
])('REDIS_URL=%s is understood', (url, address) => {
  expect(parseRedisUrl(url)).toMatchObject(address);
});

test.each([
  ['redis://:hidden@h?db=2', 'REDIS_URL redis://h has "?db", which is not supported: remove it'],
  ['redis://:hidden@h/2', 'REDIS_URL redis://h/2 names a database: remove "/2", and use KEY_PREFIX'],
  ['redis://:hidden@h?password=hidden', 'REDIS_URL redis://h has "?password", which'],
  ['redis://h?sentinelPassword=hidden', 'REDIS_URL redis://h has "?sentinelPassword", which'],
  [
    'redis+sentinel://:hidden@h/main?sentinelPassword=hid@den&db=1',
    'redis+sentinel://h/main has "?db", which',
  ],
  ['redis+sentinel://:hidden@h?sentinelPassword=hid@den', "redis+sentinel://h lacks the master's name"],
  ['redis://:hidden@h:0', 'REDIS_URL redis://h:0: "h:0" is not host:port'],
  ['redis://:hidden@a,b/main', 'names several hosts: write redis+cluster:// or redis+sentinel://…/NAME'],
  ['http://:hidden@h', 'REDIS_URL cannot start with http://'],
])('REDIS_URL=%s is refused with the remedy, and without the password', (url, message) => {
  expect(() => parseRedisUrl(url)).toThrow(message);
  expect(() => parseRedisUrl(url)).not.toThrow(/hid|den/);
});
