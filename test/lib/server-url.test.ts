import { expect, test } from '@jest/globals';
import { serverUrl } from '../../src/lib/server-url.ts';

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
