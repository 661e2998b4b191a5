import { expect, test } from '@jest/globals';
import { isLoopback, namesLoopback } from '../../src/lib/loopback.ts';

test.each<[string, boolean]>([
  ['127.0.0.1', true],
  ['::1', true],
  ['::ffff:127.0.0.1', true],
  ['localhost', true],
  ['0.0.0.0', false],
  ['::', false],
  ['192.168.0.1', false],
  ['127.evil.example', false],
])('%s is loopback: %s', (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
  expect(namesLoopback(`${host.includes(':') ? `[${host}]` : host}:9`, 9)).toBe(expected);
});
