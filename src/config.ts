import { readPolicyFields, type PolicyFields, type PolicyLayer } from './deprecation/policy/policy.ts';
import type { RateLimit } from './api/middleware/rate-limit.ts';
import { readSecretFiles } from './lib/files/secret-files.ts';
import type { BucketCredentials } from './media/s3.ts';
import { readMediaUrl } from './media/url.ts';
import { isLoopback } from './lib/hosts.ts';
import type { SecretFiles } from './redis/connection/open.ts';
import { parseRedisUrl } from './redis/connection/url.ts';
import * as formats from './config-formats.ts';

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

  /** The value of a variable; an empty variable counts as unset. */
  const take = <Value, Fallback>(
    name: string,
    fallback: Fallback,
    { parse, expected }: formats.Format<Value>,
  ): Value | Fallback => {
    const text = env[name]?.trim();
    if (text === undefined || text === '') return fallback;
    const value = parse(text);
    if (value !== undefined) return value;
    mistakes.push(`${name} must be ${expected}, not "${text}"`);
    return fallback;
  };

  const config: Config = {
    port: take('PORT', 8080, formats.portNumber),
    host: take('HOST', '127.0.0.1', formats.anyText),
    adminPort: take('ADMIN_PORT', undefined, formats.portNumber),
    adminHost: take('ADMIN_HOST', '127.0.0.1', formats.anyText),
    // Checked below: a message about a mistake must not contain the secret.
    adminToken: env['ADMIN_TOKEN']?.trim() || undefined,
    redisUrl: take('REDIS_URL', undefined, formats.anyText),
    redisSecrets: {
      ca: take('REDIS_CA_FILE', undefined, formats.anyText),
      cert: take('REDIS_CERT_FILE', undefined, formats.anyText),
      key: take('REDIS_KEY_FILE', undefined, formats.anyText),
      password: take('REDIS_PASSWORD_FILE', undefined, formats.anyText),
    },
    allowEviction: take('ALLOW_EVICTION', false, formats.flag),
    writeReplicas: take('WRITE_REPLICAS', 0, formats.wholeNumber(0, 100, 'replicas')),
    dataDir: take('DATA_DIR', './data', formats.anyText),
    keyPrefix: take('KEY_PREFIX', defaultKeyPrefix, formats.keyPrefix),
    organizationHeader: take('ORGANIZATION_HEADER', 'x-platform-organization-id', formats.headerName),
    publicBaseUrl: take('PUBLIC_BASE_URL', undefined, formats.baseUrl),
    mediaUrl: take('MEDIA_URL', undefined, formats.anyText),
    aws: {
      accessKeyId: env['AWS_ACCESS_KEY_ID'] || undefined,
      secretAccessKey: env['AWS_SECRET_ACCESS_KEY'] || undefined,
      sessionToken: env['AWS_SESSION_TOKEN'] || undefined,
      region: env['AWS_REGION'] || undefined,
    },
    corsOrigins: take('CORS_ORIGINS', [], formats.origins),
    corsHeaders: take('CORS_HEADERS', [], formats.headerNames),
    rateLimit: take('RATE_LIMIT', undefined, formats.rateLimit),
    authFailureLimit: take('AUTH_FAILURE_LIMIT', { requests: 600, seconds: 60 }, formats.failureLimit),
    trustProxy: take('TRUST_PROXY', 0, formats.trustedProxies),
    maxListBytes: take(
      'MAX_LIST_BYTES',
      16 * 1024 * 1024,
      formats.wholeNumber(1024, 512 * 1024 * 1024, 'bytes'),
    ),
    deprecation: {},
    drainDelay: take('DRAIN_DELAY', 0, formats.wholeNumber(0, 300, 'seconds')) * 1000,
    workers: take('WORKERS', 1, formats.workerCount),
    legacyBaseUrl: take('LEGACY_BASE_URL', undefined, formats.baseUrl),
    legacyTimeout: take('LEGACY_TIMEOUT', 10, formats.wholeNumber(1, 300, 'seconds')) * 1000,
    // Checked below: a message about a mistake must not contain the secret.
    replaySecret: env['REPLAY_SECRET']?.trim() || undefined,
    replaySecretPrevious: env['REPLAY_SECRET_PREVIOUS']?.trim() || undefined,
    replayMax: take('REPLAY_MAX', 1_000_000, formats.wholeNumber(1000, 100_000_000)),
    logLevel: take('LOG_LEVEL', 'info', formats.oneOf(logLevels)),
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
