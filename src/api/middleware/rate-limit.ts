import { isIPv6 } from 'node:net';
import type { Request, Response } from 'express';
import {
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
  type RateLimiterAbstract,
} from 'rate-limiter-flexible';
import { problem, ProblemError } from '../../contract/problems.ts';
import { authFailuresKey } from '../../redis/keys.ts';
import type { Store } from '../../redis/scripts.ts';

/** So many requests in so many seconds. */
export interface RateLimit {
  requests: number;
  seconds: number;
}

/** Counts a request of a key; throws a 429 `rate-limited` where it is above the limit. */
export type Limiter = (response: Response, base: string, keyId: string) => Promise<void>;

/** One limit per API key over all instances, counted in Redis beside the organization's other keys. */
export function createLimiter(store: Store, limit: RateLimit): Limiter {
  const limiter = new RateLimiterRedis(inRedis(store, limit));
  return async (response, base, keyId) => {
    const { consumedPoints, msBeforeNext } = await consume(limiter, `${base}rate:${keyId}`);
    const detail = `This API key may send ${limit.requests} requests in ${limit.seconds} s.`;
    const refusal = report(response, 'key', limit, consumedPoints, msBeforeNext, detail);
    if (refusal !== undefined) throw refusal;
  };
}

/**
 * Limits failed authentications per client address. An address above the limit is blocked until the period ends: its
 * requests are refused without looking their keys up, except for keys that have been valid on this instance, since
 * other clients may share the address.
 */
export interface FailureLimiter {
  /** SHA-256 of keys that have been valid on this instance lately. */
  knownKeys: Set<string>;
  /** The end of each block, by `performance.now()`. Mostly empty, so that callers need not `check` then. */
  blocked: ReadonlyMap<string, number>;
  /** Throws a 429 `rate-limited` where the address is blocked. */
  check: (request: Request, response: Response, sha256: string) => void;
  /** Counts a failed authentication; throws a 429 `rate-limited` where it is above the limit. */
  count: (request: Request, response: Response, sha256: string) => Promise<void>;
}

/** One limit over all instances, counted in Redis; in this process alone while Redis is away. */
export function createFailureLimiter(store: Store, keyPrefix: string, limit: RateLimit): FailureLimiter {
  const insuranceLimiter = new RateLimiterMemory({ points: limit.requests, duration: limit.seconds });
  const limiter = new RateLimiterRedis({ ...inRedis(store, limit), insuranceLimiter });
  const knownKeys = new Set<string>();
  const blocked = new Map<string, number>();

  const reportFailures = (response: Response, consumed: number, msBeforeNext: number) =>
    report(
      response,
      'address',
      limit,
      consumed,
      msBeforeNext,
      'Too many authentications from this address failed.',
    );

  return {
    knownKeys,
    blocked,
    check: (request, response, sha256) => {
      const until = blocked.get(networkOf(request.ip));
      if (until === undefined || knownKeys.has(sha256)) return;
      const refusal = reportFailures(response, Infinity, until - performance.now());
      if (refusal !== undefined) throw refusal;
    },
    count: async (request, response, sha256) => {
      knownKeys.delete(sha256);
      const network = networkOf(request.ip);
      const { consumedPoints, msBeforeNext } = await consume(limiter, authFailuresKey(keyPrefix, network));
      const refusal = reportFailures(response, consumedPoints, msBeforeNext);
      if (refusal === undefined) return;
      blocked.set(network, performance.now() + msBeforeNext);
      setTimeout(() => blocked.delete(network), msBeforeNext).unref();
      throw refusal;
    },
  };
}

function inRedis(storeClient: Store, { requests, seconds }: RateLimit) {
  return { storeClient, points: requests, duration: seconds, keyPrefix: '', useRedisPackage: false };
}

async function consume(limiter: RateLimiterAbstract, key: string): Promise<RateLimiterRes> {
  const result: unknown = await limiter.consume(key).catch((error: unknown) => error);
  if (result instanceof RateLimiterRes) return result;
  throw result;
}

/**
 * Sets the fields of draft-ietf-httpapi-ratelimit-headers, which tell how much of the limit is left; returns the 429
 * where nothing is.
 */
function report(
  response: Response,
  name: string,
  { requests, seconds }: RateLimit,
  consumed: number,
  msBeforeNext: number,
  detail: string,
): ProblemError | undefined {
  const reset = Math.max(1, Math.ceil(msBeforeNext / 1000));
  response.setHeader('RateLimit-Policy', `"${name}";q=${requests};w=${seconds}`);
  response.setHeader('RateLimit', `"${name}";r=${Math.max(0, requests - consumed)};t=${reset}`);
  if (consumed <= requests) return undefined;
  return new ProblemError(problem('rate-limited', detail, { retryAfterSeconds: reset }));
}

/** What counts as one client: an IPv4 address, or the /64 network of an IPv6 address, which one client usually has. */
function networkOf(address = ''): string {
  const ipv4 = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (ipv4 !== undefined || !isIPv6(address)) return ipv4 ?? address;
  const [head = [], tail = []] = address.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array.from({ length: Math.max(0, 8 - head.length - tail.length) }, () => '0');
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(':')}::`;
}
