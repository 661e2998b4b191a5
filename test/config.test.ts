import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { ConfigError, readConfig } from '../src/config.ts';
import { describeWithOpenssl } from './support/servers/certificate.ts';

test('an empty environment is valid', () => {
  expect(readConfig({})).toMatchObject({
    port: 8080,
    host: '127.0.0.1',
    adminPort: undefined,
    adminHost: '127.0.0.1',
    adminToken: undefined,
    redisUrl: undefined,
    dataDir: './data',
    organizationHeader: 'x-platform-organization-id',
    corsOrigins: [],
    logLevel: 'info',
  });
});

test('an empty variable counts as unset', () => {
  expect(readConfig({ PORT: '', REDIS_URL: ' ', SUNSET_AT: '' })).toMatchObject({ port: 8080 });
});

test('spaces around a value do not count', () => {
  const env = {
    PORT: ' 8000 ',
    AFTER_SUNSET: 'gone ',
    SUNSET_AT: ' ',
    AWS_REGION: ' eu-central-1',
    AWS_SESSION_TOKEN: ' ',
  };
  expect(readConfig(env)).toMatchObject({
    port: 8000,
    deprecation: { afterSunset: 'gone' },
    aws: { region: 'eu-central-1', sessionToken: undefined },
  });
});

test('all mistakes are reported at once, one per line', () => {
  const broken = {
    PORT: '80800',
    ADMIN_PORT: 'high',
    ADMIN_TOKEN: 'sword fish',
    REDIS_URL: 'http://example.com',
    MEDIA_URL: 'ftp://x',
    KEY_PREFIX: 'a{b}',
    ORGANIZATION_HEADER: 'no spaces',
    PUBLIC_BASE_URL: 'example.com',
    CORS_ORIGINS: 'https://a.example/path',
    CORS_HEADERS: 'x trace',
    RATE_LIMIT: 'many',
    AUTH_FAILURE_LIMIT: 'few',
    TRUST_PROXY: 'everybody',
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
  for (const word of ['PORT', 'ADMIN_PORT', 'REDIS_URL', 'MEDIA_URL', 'KEY_PREFIX', 'ORGANIZATION_HEADER']) {
    expect(message).toContain(word);
  }
  expect(message.split('\n')).toHaveLength(Object.keys(broken).length);
  expect(message).not.toContain('sword fish');
});

describe('the admin port', () => {
  test.each(['127.0.0.1', '127.1.2.3', 'localhost', '::1'])('needs no token on %s', (host) => {
    expect(readConfig({ ADMIN_HOST: host })).toMatchObject({ adminHost: host, adminToken: undefined });
  });

  test.each(['0.0.0.0', '::', '10.0.0.5', 'admin.example.com', '127.0.0.1.example.com'])(
    'needs a token on %s',
    (host) => {
      expect(() => readConfig({ ADMIN_HOST: host })).toThrow(/^ADMIN_TOKEN must be set, since ADMIN_HOST/);
      expect(readConfig({ ADMIN_HOST: host, ADMIN_TOKEN: '0123456789abcdef' })).toMatchObject({
        adminToken: '0123456789abcdef',
      });
    },
  );

  test('rejects a token that a header cannot carry', () => {
    for (const ADMIN_TOKEN of ['0123456789 abcdef', 'pässwörter-sind-gut']) {
      expect(() => readConfig({ ADMIN_TOKEN })).toThrow(/ASCII characters/);
    }
  });

  test('must differ from the public port', () => {
    expect(() => readConfig({ PORT: '9000', ADMIN_PORT: '9000' })).toThrow('must differ from PORT');
  });
});

test.each([
  ['WORKERS', '0'],
  ['LEGACY_TIMEOUT', '0'],
  ['LEGACY_TIMEOUT', '301'],
  ['REPLAY_MAX', '999'],
  ['REPLAY_SECRET', 'x'.repeat(31)],
  ['REPLAY_SECRET_PREVIOUS', 'x'.repeat(32)],
  ['MAX_LIST_BYTES', '0'],
  ['DRAIN_DELAY', '301'],
])('%s=%s is refused', (name, value) => {
  expect(() => readConfig({ [name]: value })).toThrow(new RegExp(`^${name} `));
});

describe('values are parsed', () => {
  test.each<[string, string, object]>([
    ['PUBLIC_BASE_URL', 'https://profiles.example/x/', { publicBaseUrl: 'https://profiles.example/x' }],
    [
      'CORS_ORIGINS',
      'https://a.example, http://localhost:3000',
      { corsOrigins: ['https://a.example', 'http://localhost:3000'] },
    ],
    ['DRAIN_DELAY', '5', { drainDelay: 5000 }],
    ['RATE_LIMIT', '600', { rateLimit: { requests: 600, seconds: 60 } }],
    ['RATE_LIMIT', '5/1', { rateLimit: { requests: 5, seconds: 1 } }],
    ['AUTH_FAILURE_LIMIT', '', { authFailureLimit: { requests: 600, seconds: 60 } }],
    ['AUTH_FAILURE_LIMIT', '20/10', { authFailureLimit: { requests: 20, seconds: 10 } }],
    ['AUTH_FAILURE_LIMIT', '0', { authFailureLimit: 'none' }],
    ['TRUST_PROXY', '', { trustProxy: 0 }],
    ['TRUST_PROXY', '2', { trustProxy: 2 }],
    ['TRUST_PROXY', 'loopback, 10.0.0.0/8,fd00::/8', { trustProxy: ['loopback', '10.0.0.0/8', 'fd00::/8'] }],
    ['CORS_HEADERS', 'X-Trace, traceparent', { corsHeaders: ['x-trace', 'traceparent'] }],
    ['ORGANIZATION_HEADER', 'X-Acme-Organization-Id', { organizationHeader: 'x-acme-organization-id' }],
    ['ALLOW_EVICTION', '1', { allowEviction: true }],
    ['DEPRECATED_AT', '2026-01-01T00:00:00Z', { deprecation: { deprecatedAt: Date.UTC(2026, 0, 1) } }],
  ])('%s=%s', (name, value, expected) => {
    expect(readConfig({ [name]: value })).toMatchObject(expected);
  });
});

test.each([
  'true',
  '*',
  '0.0.0.0/0',
  '::/0',
  '10.0.0.0/33',
  'fd00::/129',
  '10.0.0.0/',
  '300.1.1.1',
  'proxy.example',
  'loopback,',
])('TRUST_PROXY=%s is refused', (value) => {
  expect(() => readConfig({ TRUST_PROXY: value })).toThrow(/^TRUST_PROXY must be a number of proxies, or /);
});

test.each(['?', '#', '?v=2', 'x/#top'])(
  'PUBLIC_BASE_URL cannot end in %s, since a path is added to it',
  (end) => {
    expect(() => readConfig({ PUBLIC_BASE_URL: `https://profiles.example/${end}` })).toThrow(
      /^PUBLIC_BASE_URL/,
    );
  },
);

test.each(['LEGACY_BASE_URL', 'PUBLIC_BASE_URL'])('credentials in %s are refused and not shown', (name) => {
  expect(() => readConfig({ [name]: 'https://user:swordfish@service.example/' })).toThrow(
    new ConfigError(
      `${name} must be an http or https URL without credentials or a query, not "https://…@service.example/"`,
    ),
  );
});

test.each([
  ['LEGACY_BASE_URL', 'http://user:sword/fish@service.example', '"http://…@service.example"'],
  ['CORS_ORIGINS', 'https://a.example,https://user:swordfish@b.example', '"https://…@b.example"'],
  ['CORS_ORIGINS', 'https://user:a@a.example,https://user:swordfish@b.example', '"https://…@b.example"'],
])('a password in %s=%s is not shown', (name, value, shown) => {
  expect(() => readConfig({ [name]: value })).toThrow(new RegExp(`^${name} must be .*, not ${shown}$`));
});

test.each([
  ['LEGACY_BASE_URL', 'https:/user:swordfish@legacy'],
  ['SUCCESSOR_URL', 'https://user:swordfish@kv.example/'],
  ['SUNSET_URL', 'https:user:swordfish@kv.example'],
  ['LEGACY_BASE_URL', 'https://user:swordfish fillet@legacy'],
  ['SUCCESSOR_URL', 'https://user:swordfish"s fillet@kv.example/'],
])('a password in %s is not shown, however the address is written: %s', (name, value) => {
  expect(() => readConfig({ [name]: value })).toThrow(/^[A-Z_]+:? (?!.*swordfish).*…@/);
});

test.each(['REDIS_CA_FILE', 'REDIS_PASSWORD_FILE', 'WRITE_REPLICAS'])(
  '%s is refused without REDIS_URL, for it is not about the embedded Redis',
  (name) => {
    const value = name === 'WRITE_REPLICAS' ? '1' : '/etc/hostname';
    expect(() => readConfig({ [name]: value })).toThrow(`${name} needs REDIS_URL`);
  },
);

test.each(['x-api-key', 'set-cookie', 'Transfer-Encoding', 'host', 'Keep-Alive', 'TE', 'X-Forwarded-For'])(
  'a header that means something else cannot name the organization: %s',
  (name) => {
    expect(() => readConfig({ ORGANIZATION_HEADER: name })).toThrow(
      /^ORGANIZATION_HEADER must be the name of an HTTP header without another meaning, not "/,
    );
  },
);

test('a mistake in the deprecation policy is reported under its variable', () => {
  const env = { DEPRECATED_AT: 'spring', SUCCESSOR_URL: 'ftp://kv.example', AFTER_SUNSET: 'maybe' };
  expect(() => readConfig(env)).toThrow(
    [
      'DEPRECATED_AT: "spring" is not an ISO 8601 time with a zone; write it like 2027-01-31T12:00:00Z',
      'SUCCESSOR_URL: "ftp://kv.example" is not an http(s) URL without credentials',
      'AFTER_SUNSET: "maybe" is neither serve nor gone',
    ].join('\n'),
  );
});

test.each([
  ['SUNSET_AT', { DEPRECATED_AT: '2026-01-01T00:00:00Z', SUNSET_AT: '2025-01-01T00:00:00Z' }],
  ['SUNSET_AT', { SUNSET_AT: '1999-01-01T00:00:00Z' }],
  ['DEPRECATED_AT', { DEPRECATED_AT: '2999-01-01T00:00:00Z' }],
])('a sunset before the deprecation is reported under %s, with other mistakes: %o', (name, dates) => {
  expect(() => readConfig({ PORT: 'x', AFTER_SUNSET: 'maybe', ...dates })).toThrow(
    new RegExp(`^PORT must be .*\nAFTER_SUNSET: .*\n${name}: the sunset .* is before the deprecation`),
  );
});

test('the order of dates is not judged where one of them cannot be read', () => {
  const env = { DEPRECATED_AT: 'spring', SUNSET_AT: '1999-01-01T00:00:00Z' };
  expect(() => readConfig(env)).toThrow(/^DEPRECATED_AT: .*spring.*$/);
});

describe('a secret', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'secrets-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  function file(content: string): string {
    writeFileSync(join(folder, 'secret'), content);
    return join(folder, 'secret');
  }

  test.each<[string, string, object]>([
    ['ADMIN_TOKEN', '0123456789abcdef', { adminToken: '0123456789abcdef' }],
    ['REDIS_URL', 'redis://:swordfish@redis:6379', { redisUrl: 'redis://:swordfish@redis:6379' }],
    ['AWS_SECRET_ACCESS_KEY', 'swordfish', { aws: { secretAccessKey: 'swordfish' } }],
  ])('can come from a file: %s_FILE', (name, secret, expected) => {
    expect(readConfig({ [`${name}_FILE`]: file(`${secret}\n`) })).toMatchObject(expected);
  });

  test.each<[string, () => NodeJS.ProcessEnv, RegExp]>([
    [
      'the file is missing',
      () => ({ ADMIN_TOKEN_FILE: '/nowhere' }),
      /^ADMIN_TOKEN_FILE: \/nowhere .*ENOENT/,
    ],
    [
      'the file of a certificate is missing',
      () => ({ REDIS_CA_FILE: '/nowhere' }),
      /^REDIS_CA_FILE: \/nowhere .*ENOENT/,
    ],
    [
      'the file is missing, and only that if the secret is required',
      () => ({ ADMIN_TOKEN_FILE: '/nowhere', ADMIN_HOST: '0.0.0.0' }),
      /^ADMIN_TOKEN_FILE: \/nowhere .*ENOENT[^\n]*$/,
    ],
    ['the file is empty', () => ({ ADMIN_TOKEN_FILE: file('\n') }), /^ADMIN_TOKEN_FILE: .* is empty$/],
    [
      'it is given twice',
      () => ({ ADMIN_TOKEN_FILE: file('one'), ADMIN_TOKEN: 'two' }),
      /^ADMIN_TOKEN_FILE: ADMIN_TOKEN is set as well/,
    ],
  ])('is reported under its variable if %s', (_name, env, message) => {
    expect(() => readConfig(env())).toThrow(message);
  });
});

describeWithOpenssl('the files of an encrypted connection to Redis', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tls-'));
  const [cert, key, otherKey] = ['cert.pem', 'key.pem', 'other-key.pem'].map((name) => join(folder, name));
  beforeAll(() => {
    const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=redis', '-keyout'];
    execFileSync('openssl', [...request, key ?? '', '-out', cert ?? ''], { stdio: 'ignore' });
    execFileSync('openssl', ['genrsa', '-out', otherKey ?? '', '2048'], { stdio: 'ignore' });
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test.each<[string, NodeJS.ProcessEnv, RegExp]>([
    ['no certificate', { REDIS_CA_FILE: key }, /^REDIS_CA_FILE must name a certificate in PEM$/],
    [
      'a certificate for a key',
      { REDIS_CERT_FILE: cert, REDIS_KEY_FILE: cert },
      /^REDIS_KEY_FILE must name a private key in PEM, without a passphrase$/,
    ],
    [
      "another certificate's key",
      { REDIS_CERT_FILE: cert, REDIS_KEY_FILE: otherKey },
      /^REDIS_KEY_FILE is not the key of REDIS_CERT_FILE$/,
    ],
    ['a key alone', { REDIS_KEY_FILE: key }, /^REDIS_CERT_FILE and REDIS_KEY_FILE must be set together$/],
    [
      'a connection that is not encrypted',
      { REDIS_URL: 'redis://redis', REDIS_CA_FILE: cert },
      /^REDIS_CA_FILE is only for a REDIS_URL that begins with rediss$/,
    ],
  ])('are refused: %s', (_name, env, message) => {
    expect(() => readConfig({ REDIS_URL: 'rediss://redis', ...env })).toThrow(message);
  });

  test('are accepted if they belong together', () => {
    const files = { REDIS_CA_FILE: cert, REDIS_CERT_FILE: cert, REDIS_KEY_FILE: key };
    const { redisSecrets } = readConfig({ REDIS_URL: 'rediss+cluster://redis', ...files });
    expect(redisSecrets.tls.key).toContain('PRIVATE KEY');
  });
});
