import { isIP } from 'node:net';
import { readPolicyFields, type PolicyFields, type PolicyLayer } from './deprecation/policy/policy.ts';
import type { RateLimit } from './api/middleware/rate-limit.ts';
import { availableCpus } from './lib/system/cpu-quota.ts';
import { readSecretFiles } from './lib/files/secret-files.ts';
import type { BucketCredentials } from './media/s3.ts';
import { readMediaUrl } from './media/url.ts';
import { isLoopback } from './lib/hosts.ts';
import type { SecretFiles } from './redis/connection/open.ts';
import { parseRedisUrl } from './redis/connection/url.ts';

/** The admin port, unless ADMIN_PORT is set. */
export const defaultAdminPort = 8081;

/** What all keys begin with, unless KEY_PREFIX says otherwise. */
export const defaultKeyPrefix = 'pb:';

/** The configuration of the service, read once from the environment. */
export interface Config {
  port: number;
  host: string;
  /** Undefined: defaultAdminPort, if it is free. */
  adminPort: number | undefined;
  adminHost: string;
  /** Undefined only if `adminHost` is a loopback address. */
  adminToken: string | undefined;
  /** Undefined: the bridge runs a Redis of its own under `dataDir`. */
  redisUrl: string | undefined;
  /** Files with certificates for TLS, and with the password. */
  redisSecrets: SecretFiles;
  allowEviction: boolean;
  /** How many replicas must have a write before it is answered. */
  writeReplicas: number;
  dataDir: string;
  keyPrefix: string;
  /** In lower case, as Node.js reports header names. */
  organizationHeader: string;
  /** Without a trailing slash. Undefined: the address of the server. */
  publicBaseUrl: string | undefined;
  mediaUrl: string | undefined;
  /** For a media store in a bucket. Without a key, the AWS SDK's own sources apply: profiles, roles, instance metadata. */
  aws: BucketCredentials;
  corsOrigins: readonly string[];
  /** In lower case. */
  corsHeaders: readonly string[];
  rateLimit: RateLimit | undefined;
  /** Failed authentications per client address. */
  authFailureLimit: RateLimit | 'none';
  /** Whose X-Forwarded-For is believed: a number of proxies in front of the service, or their addresses and subnets. */
  trustProxy: number | string[];
  /** The largest JSON body of a denylist operation, in bytes. */
  maxListBytes: number;
  deprecation: PolicyLayer;
  /** How long to accept requests after a signal to stop, while /readyz is already 503, in ms. */
  drainDelay: number;
  /** The number of processes that serve requests. */
  workers: number;
  /** Without a trailing slash. Undefined: there is no cut-over, and the bridge serves in native mode. */
  legacyBaseUrl: string | undefined;
  /** How long the legacy service may take to respond, in ms. */
  legacyTimeout: number;
  /** What the stored credentials of waiting replays are encrypted with. */
  replaySecret: string | undefined;
  /** The secret before, which opens what was encrypted with it. */
  replaySecretPrevious: string | undefined;
  /** How many changes of an organization may wait for their replay before further ones are refused. */
  replayMax: number;
  logLevel: string;
}

/** The configuration is invalid; `message` has a line for each mistake. */
export class ConfigError extends Error {}

const logLevels = ['error', 'warn', 'info', 'http', 'verbose', 'debug', 'silly'];

/** Each of them can also be given as a file, by `NAME_FILE`. */
const secrets = [
  'ADMIN_TOKEN',
  'REDIS_URL',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  'REPLAY_SECRET',
  'REPLAY_SECRET_PREVIOUS',
];

const policyVariables: Record<keyof PolicyFields, string> = {
  deprecatedAt: 'DEPRECATED_AT',
  sunsetAt: 'SUNSET_AT',
  successor: 'SUCCESSOR_URL',
  documentation: 'DEPRECATION_URL',
  sunsetDocumentation: 'SUNSET_URL',
  afterSunset: 'AFTER_SUNSET',
};

/** Reads the environment (README, "Configuration"). Throws a ConfigError that names every mistake at once. */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const { env, mistakes } = readSecretFiles(environment, secrets);

  /** The value of a variable, parsed by `read`; an empty variable counts as unset. */
  const take = <Value, Fallback>(
    name: string,
    fallback: Fallback,
    read: (text: string) => Value | undefined,
    expected: string,
  ): Value | Fallback => {
    const text = env[name]?.trim();
    if (text === undefined || text === '') return fallback;
    const value = read(text);
    if (value !== undefined) return value;
    mistakes.push(`${name} must be ${expected}, not "${text}"`);
    return fallback;
  };

  const config: Config = {
    port: take('PORT', 8080, wholeNumber(0, 65_535), 'a port number'),
    host: take('HOST', '127.0.0.1', anyText, 'a host'),
    adminPort: take('ADMIN_PORT', undefined, wholeNumber(0, 65_535), 'a port number'),
    adminHost: take('ADMIN_HOST', '127.0.0.1', anyText, 'a host'),
    // Checked below: a message about a mistake must not contain the secret.
    adminToken: env['ADMIN_TOKEN']?.trim() || undefined,
    redisUrl: take('REDIS_URL', undefined, anyText, 'a URL'),
    redisSecrets: {
      ca: take('REDIS_CA_FILE', undefined, anyText, 'a file'),
      cert: take('REDIS_CERT_FILE', undefined, anyText, 'a file'),
      key: take('REDIS_KEY_FILE', undefined, anyText, 'a file'),
      password: take('REDIS_PASSWORD_FILE', undefined, anyText, 'a file'),
    },
    allowEviction: take('ALLOW_EVICTION', false, flag, '1 or 0'),
    writeReplicas: take('WRITE_REPLICAS', 0, wholeNumber(0, 100), 'a number of replicas from 0 to 100'),
    dataDir: take('DATA_DIR', './data', anyText, 'a folder'),
    keyPrefix: take(
      'KEY_PREFIX',
      defaultKeyPrefix,
      keyPrefix,
      'without braces, spaces and control characters',
    ),
    organizationHeader: take(
      'ORGANIZATION_HEADER',
      'x-platform-organization-id',
      headerName,
      'the name of an HTTP header',
    ),
    publicBaseUrl: take('PUBLIC_BASE_URL', undefined, baseUrl, 'an http or https URL without a query'),
    mediaUrl: take('MEDIA_URL', undefined, anyText, 'a file: or s3: URL'),
    aws: {
      accessKeyId: env['AWS_ACCESS_KEY_ID'] || undefined,
      secretAccessKey: env['AWS_SECRET_ACCESS_KEY'] || undefined,
      sessionToken: env['AWS_SESSION_TOKEN'] || undefined,
      region: env['AWS_REGION'] || undefined,
    },
    corsOrigins: take(
      'CORS_ORIGINS',
      [],
      origins,
      'a comma-separated list of origins such as https://example.com',
    ),
    corsHeaders: take('CORS_HEADERS', [], headerNames, 'a comma-separated list of header names'),
    rateLimit: take('RATE_LIMIT', undefined, rateLimit, 'REQUESTS/SECONDS such as 600/60'),
    authFailureLimit: take(
      'AUTH_FAILURE_LIMIT',
      { requests: 600, seconds: 60 },
      (text) => (text === '0' ? 'none' : rateLimit(text)),
      'FAILURES/SECONDS such as 600/60, or 0 for no limit',
    ),
    trustProxy: take(
      'TRUST_PROXY',
      0,
      trustedProxies,
      'a number of proxies, or a comma-separated list of their addresses and subnets, loopback, linklocal or uniquelocal',
    ),
    maxListBytes: take(
      'MAX_LIST_BYTES',
      16 * 1024 * 1024,
      wholeNumber(1024, 512 * 1024 * 1024),
      'a number of bytes from 1024 to 536870912',
    ),
    deprecation: {},
    drainDelay: take('DRAIN_DELAY', 0, wholeNumber(0, 300), 'a number of seconds from 0 to 300') * 1000,
    workers: take('WORKERS', 1, workerCount, `auto, or a number from 1 to ${maxWorkers}`),
    legacyBaseUrl: take('LEGACY_BASE_URL', undefined, baseUrl, 'an http or https URL without a query'),
    legacyTimeout:
      take('LEGACY_TIMEOUT', 10, wholeNumber(1, 300), 'a number of seconds from 1 to 300') * 1000,
    // Checked below: a message about a mistake must not contain the secret.
    replaySecret: env['REPLAY_SECRET']?.trim() || undefined,
    replaySecretPrevious: env['REPLAY_SECRET_PREVIOUS']?.trim() || undefined,
    replayMax: take(
      'REPLAY_MAX',
      1_000_000,
      wholeNumber(1000, 100_000_000),
      'a number from 1000 to 100000000',
    ),
    logLevel: take(
      'LOG_LEVEL',
      'info',
      (text) => (logLevels.includes(text) ? text : undefined),
      `one of ${logLevels.join(', ')}`,
    ),
  };

  const { adminToken, adminHost, port } = config;
  if (adminToken === undefined && !isLoopback(adminHost)) {
    mistakes.push(`ADMIN_TOKEN must be set if ADMIN_HOST (${adminHost}) is not a loopback address`);
  } else if (adminToken !== undefined && !/^[\x21-\x7e]+$/.test(adminToken)) {
    mistakes.push('ADMIN_TOKEN must consist of ASCII characters, without spaces');
  }
  if (config.replaySecret !== undefined && config.replaySecret.length < 32) {
    mistakes.push('REPLAY_SECRET must have at least 32 characters');
  }
  if (config.replaySecretPrevious !== undefined && config.replaySecret === undefined) {
    mistakes.push('REPLAY_SECRET_PREVIOUS needs REPLAY_SECRET, the one to use from now on');
  }
  if (port !== 0 && port === config.adminPort) mistakes.push('ADMIN_PORT must differ from PORT');

  if (config.redisUrl !== undefined) {
    try {
      parseRedisUrl(config.redisUrl);
    } catch (error) {
      mistakes.push(error instanceof Error ? error.message : String(error));
    }
  }
  const media = readMediaUrl(config.mediaUrl, { dataDir: config.dataDir, region: config.aws.region });
  if (media.kind === 'wrong') mistakes.push(`MEDIA_URL ${media.reason}`);

  const given = Object.entries(policyVariables).map(([field, name]) => [field, env[name] || undefined]);
  const policy = readPolicyFields(Object.fromEntries(given) as PolicyFields);
  if (policy.kind === 'ok') config.deprecation = policy.layer;
  else mistakes.push(...policy.mistakes.map(({ field, reason }) => `${policyVariables[field]}: ${reason}`));

  if (mistakes.length > 0) throw new ConfigError(mistakes.join('\n'));
  return config;
}

const maxWorkers = 128;

function workerCount(text: string): number | undefined {
  return text === 'auto' ? Math.min(availableCpus(), maxWorkers) : wholeNumber(1, maxWorkers)(text);
}

const anyText = (text: string): string => text;

function wholeNumber(least: number, greatest: number): (text: string) => number | undefined {
  return (text) => {
    const value = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN;
    return value >= least && value <= greatest ? value : undefined;
  };
}

function flag(text: string): boolean | undefined {
  if (/^(1|true|yes)$/i.test(text)) return true;
  return /^(0|false|no)$/i.test(text) ? false : undefined;
}

function keyPrefix(text: string): string | undefined {
  // Redis Cluster would take braces for the hash tag, which is the organization.
  return /^[^{}\s\p{Cc}]+$/u.test(text) ? text : undefined;
}

/** RFC 9110 §5.6.2. */
const token = /^[\w!#$%&'*+.^`|~-]+$/;

function headerName(text: string): string | undefined {
  const name = text.toLowerCase();
  // These have a meaning of their own.
  const taken = ['x-api-key', 'content-type', 'content-length', 'host', 'connection', 'x-request-id'];
  return token.test(name) && !taken.includes(name) ? name : undefined;
}

function baseUrl(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '') {
    return undefined;
  }
  return url.href.replace(/\/+$/, '');
}

function headerNames(text: string): string[] | undefined {
  const names = text.split(',').map((name) => name.trim().toLowerCase());
  return names.every((name) => token.test(name)) ? names : undefined;
}

/** As Express takes them, except `true`: that would believe any client's X-Forwarded-For. */
function trustedProxies(text: string): number | string[] | undefined {
  if (/^\d{1,2}$/.test(text)) return Number(text);
  const list = text.split(',').map((proxy) => proxy.trim());
  return list.every(isProxy) ? list : undefined;
}

function isProxy(text: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true;
  const [address = '', bits = '0', ...rest] = text.split('/');
  const version = isIP(address);
  return (
    version !== 0 && rest.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128)
  );
}

function origins(text: string): string[] | undefined {
  const list = text.split(',').map((origin) => origin.trim());
  return list.every((origin) => URL.canParse(origin) && new URL(origin).origin === origin) ? list : undefined;
}

function rateLimit(text: string): RateLimit | undefined {
  const match = /^([1-9]\d{0,8})(?:\/([1-9]\d{0,5}))?$/.exec(text);
  return match === null ? undefined : { requests: Number(match[1]), seconds: Number(match[2] ?? 60) };
}
