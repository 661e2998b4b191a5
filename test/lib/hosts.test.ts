import { expect, test } from '@jest/globals';
import { ipOf, isLoopback, namesLoopback, serverUrl } from '../../src/lib/hosts.ts';

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

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['192.0.2.1:443', '192.0.2.1'],
  ['"192.0.2.1:443"', '192.0.2.1'],
  ['2001:db8::1', '2001:db8::1'],
  ['[2001:db8::1]', '2001:db8::1'],
  ['"[2001:db8::1]:443"', '2001:db8::1'],
  // A port that is not set apart by brackets is a part of the address.
  ['2001:db8::1:443', '2001:db8::1:443'],
  ['192.0.2.1:', undefined],
  ['[192.0.2.1', undefined],
  ['client.example:443', undefined],
  ['_hidden', undefined],
  [undefined, undefined],
])('the address in the entry %s of X-Forwarded-For is %s', (entry, address) => {
  expect(ipOf(entry)).toBe(address);
});

test.each([
  ['127.0.0.1', 'http://127.0.0.1:8080'],
  ['bridge.example.com', 'http://bridge.example.com:8080'],
  ['::1', 'http://[::1]:8080'],
  // Nobody can connect to a wildcard address.
  ['0.0.0.0', 'http://localhost:8080'],
  ['::', 'http://localhost:8080'],
])('a server that listens on %s has the URL %s', (host, url) => {
  expect(serverUrl(host, 8080)).toBe(url);
});
