import { isIPv6 } from 'node:net';
import type { Request, Response } from 'express';
import {
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
  type RateLimiterAbstract,
} from 'rate-limiter-flexible';
import { ipOf } from '../../lib/hosts.ts';
import { ProblemError } from '../../contract/problems.ts';
import { authFailuresKey, requestCountKey } from '../../redis/keys.ts';
import type { RedisClient } from '../../redis/connection/client.ts';

/** The number of requests allowed in a number of seconds. */
export interface RateLimit {
  requests: number;
  seconds: number;
}

/** Counts a request of a key; throws a 429 `rate-limited` if it is above the limit. */
export type Limiter = (response: Response, base: string, keyId: string) => Promise<void>;

/**
 * One limit per API key across all instances, counted in Redis with the organization's other keys, or in this process
 * while Redis takes no writes: reads go on then.
 */
export function createLimiter(store: RedisClient, limit: RateLimit): Limiter {
  const detail = `This API key may send ${limit.requests} requests in ${limit.seconds} s.`;
  const count = countWith(new RateLimiterRedis(limiterOptions(store, limit)), 'key', limit, detail);
  return (response, base, keyId) => count(response, requestCountKey(base, keyId));
}

/** Counts a failed authentication from a client address; throws a 429 `rate-limited` if it is above the limit. */
export type FailureLimiter = (request: Request, response: Response) => Promise<void>;

/**
 * One limit per client address across all instances, counted in Redis, or in this process while Redis is unavailable.
 * Valid keys are never limited, so one client cannot lock out others behind the same proxy or NAT.
 */
export function createFailureLimiter(
  store: RedisClient,
  keyPrefix: string,
  limit: RateLimit,
): FailureLimiter {
  const limiter = new RateLimiterRedis({
    ...limiterOptions(store, limit),
    inMemoryBlockOnConsumed: limit.requests + 1,
  });
  const detail = 'Too many authentications from this address failed.';
  const count = countWith(limiter, 'address', limit, detail);
  return (request, response) => count(response, authFailuresKey(keyPrefix, networkOf(request.ip)));
}

function limiterOptions(storeClient: RedisClient, { requests, seconds }: RateLimit) {
  const limit = { points: requests, duration: seconds, keyPrefix: '' };
  return { ...limit, storeClient, useRedisPackage: false, insuranceLimiter: new RateLimiterMemory(limit) };
}

/**
 * Makes a function that counts one for a key, and sets the fields of draft-ietf-httpapi-ratelimit-headers, which say
 * how much of the limit is left. Above the limit, it throws a 429 `rate-limited` with this detail.
 */
function countWith(limiter: RateLimiterAbstract, name: string, limit: RateLimit, detail: string) {
  return async (response: Response, key: string): Promise<void> => {
    const [result, isAbove] = await limiter.consume(key).then(
      (consumed) => [consumed, false] as const,
      (error: unknown) => [error, true] as const,
    );
    if (!(result instanceof RateLimiterRes)) throw result;
    const reset = Math.max(1, Math.ceil(result.msBeforeNext / 1000));
    response.setHeader('RateLimit-Policy', `"${name}";q=${limit.requests};w=${limit.seconds}`);
    response.setHeader('RateLimit', `"${name}";r=${Math.max(0, result.remainingPoints)};t=${reset}`);
    if (isAbove) throw new ProblemError('rate-limited', detail, { retryAfterSeconds: reset });
  };
}

/**
 * What counts as one client: an IPv4 address, or the /64 network of an IPv6 address, which one client usually has. All
 * for which a proxy gives no address count as one.
 */
export function networkOf(entry: string | undefined): string {
  const address = ipOf(entry) ?? '';
  const ipv4 = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (ipv4 !== undefined || !isIPv6(address)) return ipv4 ?? address;
  const [head = [], tail = []] = address.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array.from({ length: Math.max(0, 8 - head.length - tail.length) }, () => '0');
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(':')}::`;
}
