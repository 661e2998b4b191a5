import { readContractPolicy } from './deprecation/policy/contract-policy.ts';
import {
  checkPolicy,
  layerPolicy,
  readSettings,
  type PolicyLayer,
  type Setting,
  type WrittenSettings,
} from './deprecation/policy/policy.ts';
import { readSecret, readSecretFile } from './lib/files/secret-files.ts';
import type { BucketCredentials } from './media/s3.ts';
import { readMediaUrl } from './media/url.ts';
import { isLoopback } from './lib/hosts.ts';
import { parseRedisUrl } from './redis/connection/url.ts';
import * as formats from './config-formats.ts';
import { findTlsMistakes } from './config-tls.ts';

/** The admin port, unless ADMIN_PORT is set. */
export const defaultAdminPort = 8081;

/** What all keys begin with, unless KEY_PREFIX says otherwise. */
export const defaultKeyPrefix = 'pb:';

/** The configuration of the service. */
export type Config = ReturnType<typeof readVariables>;

/** The configuration is invalid; `message` has a line for each mistake. */
export class ConfigError extends Error {}

const logLevels = ['error', 'warn', 'info', 'http', 'verbose', 'debug', 'silly'];

const policyVariables: Record<Setting, string> = {
  deprecatedAt: 'DEPRECATED_AT',
  sunsetAt: 'SUNSET_AT',
  successorUrl: 'SUCCESSOR_URL',
  documentationUrl: 'DEPRECATION_URL',
  sunsetUrl: 'SUNSET_URL',
  afterSunset: 'AFTER_SUNSET',
};

/** Reads the environment (scripts/deploy/CONFIGURATION.md). Throws a ConfigError that names every mistake at once. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const mistakes: string[] = [];
  const config = readVariables(env, mistakes);
  mistakes.push(...findMistakes(config, env));
  if (mistakes.length > 0) throw new ConfigError(mistakes.join('\n'));
  return config;
}

/** Each variable by itself, or its default; adds a line for each that is invalid. */
function readVariables(env: NodeJS.ProcessEnv, mistakes: string[]) {
  const take = <Value, Fallback>(
    name: string,
    fallback: Fallback,
    { parse, expected }: formats.Format<Value>,
  ): Value | Fallback => {
    const text = formats.textOf(env, name);
    if (text === undefined) return fallback;
    const value = parse(text);
    if (value !== undefined) return value;
    mistakes.push(`${name} must be ${expected}, not "${formats.withoutCredentials(text)}"`);
    return fallback;
  };
  /** A secret has no format here, since the message of a mistake would show it: findMistakes checks it. */
  const takeSecret = (name: string): string | undefined => readSecret(env, name, mistakes);
  const takeFile = (name: string): string | undefined => {
    const file = formats.textOf(env, name);
    return file && readSecretFile(name, file, mistakes);
  };

  return {
    port: take('PORT', 8080, formats.portNumber),
    host: take('HOST', '127.0.0.1', formats.anyText),
    /** Undefined: defaultAdminPort, if it is free. */
    adminPort: take('ADMIN_PORT', undefined, formats.portNumber),
    adminHost: take('ADMIN_HOST', '127.0.0.1', formats.anyText),
    /** Undefined only if `adminHost` is a loopback address. */
    adminToken: takeSecret('ADMIN_TOKEN'),
    /** Undefined: the bridge runs a Redis of its own under `dataDir`. */
    redisUrl: takeSecret('REDIS_URL'),
    /** Certificates and key in PEM, and a password, which are read from files only. */
    redisSecrets: {
      tls: {
        ca: takeFile('REDIS_CA_FILE'),
        cert: takeFile('REDIS_CERT_FILE'),
        key: takeFile('REDIS_KEY_FILE'),
      },
      password: takeFile('REDIS_PASSWORD_FILE'),
    },
    allowEviction: take('ALLOW_EVICTION', false, formats.flag),
    /** How many replicas must have a write before its request is answered. */
    writeReplicas: take('WRITE_REPLICAS', 0, formats.wholeNumber(0, 100, 'replicas')),
    dataDir: take('DATA_DIR', './data', formats.anyText),
    keyPrefix: take('KEY_PREFIX', defaultKeyPrefix, formats.keyPrefix),
    /** In lower case, as Node.js reports header names. */
    organizationHeader: take('ORGANIZATION_HEADER', 'x-platform-organization-id', formats.headerName),
    /** Without a trailing slash. Undefined: the address of the server. */
    publicBaseUrl: take('PUBLIC_BASE_URL', undefined, formats.baseUrl),
    mediaUrl: take('MEDIA_URL', undefined, formats.anyText),
    /** For a media store in a bucket. Without a key, the AWS SDK's own sources apply, such as profiles and roles. */
    aws: {
      accessKeyId: takeSecret('AWS_ACCESS_KEY_ID'),
      secretAccessKey: takeSecret('AWS_SECRET_ACCESS_KEY'),
      sessionToken: takeSecret('AWS_SESSION_TOKEN'),
      region: take('AWS_REGION', undefined, formats.anyText),
    } as BucketCredentials,
    corsOrigins: take('CORS_ORIGINS', [], formats.origins),
    /** In lower case. */
    corsHeaders: take('CORS_HEADERS', [], formats.headerNames),
    rateLimit: take('RATE_LIMIT', undefined, formats.rateLimit),
    /** Failed authentications per client address. */
    authFailureLimit: take('AUTH_FAILURE_LIMIT', { requests: 600, seconds: 60 }, formats.failureLimit),
    /** Whose X-Forwarded-For is trusted: a number of proxies in front, or their addresses and subnets. */
    trustProxy: take('TRUST_PROXY', 0, formats.trustedProxies),
    /** The largest JSON body of a denylist operation, in bytes. */
    maxListBytes: take(
      'MAX_LIST_BYTES',
      16 * 1024 * 1024,
      formats.wholeNumber(1024, 512 * 1024 * 1024, 'bytes'),
    ),
    /** How long to accept requests after a signal to stop, while /readyz is already 503, in ms. */
    drainDelay: take('DRAIN_DELAY', 0, formats.wholeNumber(0, 300, 'seconds')) * 1000,
    /** The number of processes that serve requests. */
    workers: take('WORKERS', 1, formats.workerCount),
    /** Without a trailing slash. Undefined: there is no cut-over, and the bridge serves in native mode. */
    legacyBaseUrl: take('LEGACY_BASE_URL', undefined, formats.baseUrl),
    /** How long the legacy service may take to respond, in ms. */
    legacyTimeout: take('LEGACY_TIMEOUT', 10, formats.wholeNumber(1, 300, 'seconds')) * 1000,
    /** Encrypts the stored credentials of changes that wait for their replay. */
    replaySecret: takeSecret('REPLAY_SECRET'),
    /** The previous secret, which decrypts what was encrypted with it. */
    replaySecretPrevious: takeSecret('REPLAY_SECRET_PREVIOUS'),
    /** How many changes of an organization may wait for their replay before further ones are refused. */
    replayMax: take('REPLAY_MAX', 1_000_000, formats.wholeNumber(1000, 100_000_000)),
    logLevel: take('LOG_LEVEL', 'info', formats.oneOf(logLevels)),
    deprecation: readPolicyLayer(env, mistakes),
  };
}

/** What is wrong with secrets, with addresses that have parsers of their own, and with values together. */
function findMistakes(config: Config, env: NodeJS.ProcessEnv): string[] {
  const { adminToken, adminHost, port, redisUrl, replaySecret } = config;
  const mistakes: string[] = [];
  // A token file that cannot be read has been reported already.
  const lacksToken = adminToken === undefined && formats.textOf(env, 'ADMIN_TOKEN_FILE') === undefined;
  if (lacksToken && !isLoopback(adminHost)) {
    mistakes.push(`ADMIN_TOKEN must be set, since ADMIN_HOST (${adminHost}) is not a loopback address`);
  } else if (adminToken !== undefined && !/^[\x21-\x7e]+$/.test(adminToken)) {
    mistakes.push('ADMIN_TOKEN must consist of ASCII characters, without spaces');
  }
  if (replaySecret !== undefined && replaySecret.length < 32) {
    mistakes.push('REPLAY_SECRET must have at least 32 characters');
  }
  if (config.replaySecretPrevious !== undefined && replaySecret === undefined) {
    mistakes.push('REPLAY_SECRET_PREVIOUS needs REPLAY_SECRET, the one to use from now on');
  }
  // A file that cannot be read has been reported already.
  if (redisUrl === undefined && formats.textOf(env, 'REDIS_URL_FILE') === undefined) {
    const files = ['REDIS_CA_FILE', 'REDIS_CERT_FILE', 'REDIS_KEY_FILE', 'REDIS_PASSWORD_FILE'];
    const given = files.filter((name) => formats.textOf(env, name) !== undefined);
    if (config.writeReplicas > 0) given.push('WRITE_REPLICAS');
    mistakes.push(...given.map((name) => `${name} needs REDIS_URL: the embedded Redis does not use it`));
  }
  if (port !== 0 && port === (config.adminPort ?? defaultAdminPort)) {
    mistakes.push(`ADMIN_PORT, which is ${defaultAdminPort} unless set, must differ from PORT`);
  }
  mistakes.push(...findTlsMistakes(env, redisUrl, config.redisSecrets.tls));
  for (const check of [
    () => redisUrl !== undefined && parseRedisUrl(redisUrl),
    () => readMediaUrl(config.mediaUrl, { dataDir: config.dataDir, region: config.aws.region }),
  ]) {
    try {
      check();
    } catch (error) {
      mistakes.push(error instanceof Error ? error.message : String(error));
    }
  }
  return mistakes;
}

/** The environment's layer of the deprecation policy; its dates must also be in order with those of openapi.yaml. */
function readPolicyLayer(env: NodeJS.ProcessEnv, mistakes: string[]): PolicyLayer {
  const given = Object.entries(policyVariables).map(([setting, name]) => [
    setting,
    formats.textOf(env, name),
  ]);
  const written = Object.fromEntries(given) as WrittenSettings;
  const { layer, mistakes: unreadable } = readSettings(written);
  for (const { setting, reason } of unreadable) {
    const text = written[setting] ?? '';
    mistakes.push(
      `${policyVariables[setting]}: ${reason.replace(text, () => formats.withoutCredentials(text))}`,
    );
  }
  const dates = ['sunsetAt', 'deprecatedAt'] as const;
  const date = dates.find((setting) => layer[setting] !== undefined);
  const areReadable = !unreadable.some(({ setting }) => dates.includes(setting as (typeof dates)[number]));
  if (date !== undefined && areReadable) {
    const reasons = checkPolicy(layerPolicy(readContractPolicy(), layer), Date.now());
    mistakes.push(...reasons.map((reason) => `${policyVariables[date]}: ${reason}`));
  }
  return layer;
}
