import { describe, expect, test } from '@jest/globals';
import { ConfigError, readConfig } from '../src/config.ts';

test('an empty environment is a good one', () => {
  expect(readConfig({})).toMatchObject({
    port: 8080,
    host: '127.0.0.1',
    redisUrl: undefined,
    dataDir: './data',
    organizationHeader: 'x-platform-organization-id',
    corsOrigins: [],
    logLevel: 'info',
  });
});

test('a variable that is set to nothing counts as unset', () => {
  expect(readConfig({ PORT: '', REDIS_URL: ' ', SUNSET_AT: '' })).toMatchObject({ port: 8080 });
});

test('every mistake is told at once, a line each', () => {
  const broken = {
    PORT: '80800',
    REDIS_URL: 'http://example.com',
    MEDIA_URL: 'ftp://x',
    KEY_PREFIX: 'a{b}',
    ORGANIZATION_HEADER: 'no spaces',
    PUBLIC_BASE_URL: 'example.com',
    CORS_ORIGINS: 'https://a.example/path',
    RATE_LIMIT: 'many',
    SUNSET_AT: 'tomorrow',
    AFTER_SUNSET: 'explode',
    LOG_LEVEL: 'loud',
  };
  let message = '';
  try {
    readConfig(broken);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    ({ message } = error);
  }
  for (const word of ['PORT', 'REDIS_URL', 'MEDIA_URL', 'KEY_PREFIX', 'ORGANIZATION_HEADER']) {
    expect(message).toContain(word);
  }
  expect(message.split('\n')).toHaveLength(Object.keys(broken).length);
});

describe('values are understood as people write them', () => {
  test.each<[string, string, object]>([
    ['PUBLIC_BASE_URL', 'https://profiles.example/x/', { publicBaseUrl: 'https://profiles.example/x' }],
    [
      'CORS_ORIGINS',
      'https://a.example, http://localhost:3000',
      { corsOrigins: ['https://a.example', 'http://localhost:3000'] },
    ],
    ['RATE_LIMIT', '600', { rateLimit: { requests: 600, seconds: 60 } }],
    ['RATE_LIMIT', '5/1', { rateLimit: { requests: 5, seconds: 1 } }],
    ['ORGANIZATION_HEADER', 'X-Acme-Organization-Id', { organizationHeader: 'x-acme-organization-id' }],
    ['ALLOW_EVICTION', '1', { allowEviction: true }],
    ['DEPRECATED_AT', '2026-01-01T00:00:00Z', { deprecation: { deprecatedAt: Date.UTC(2026, 0, 1) } }],
  ])('%s=%s', (name, value, expected) => {
    expect(readConfig({ [name]: value })).toMatchObject(expected);
  });
});
