import type { Response } from 'express';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { problem, ProblemError } from '../../contract/problems.ts';
import type { Store } from '../../redis/scripts.ts';

/** How many requests one API key may send in how many seconds. */
export interface RateLimit {
  requests: number;
  seconds: number;
}

/** Counts a request of a key; throws a 429 `rate-limited` where it is above the limit. */
export type Limiter = (response: Response, base: string, keyId: string) => Promise<void>;

/**
 * One limit over all instances, counted in Redis beside the organization's other keys. Every answer says how
 * much is left, by the fields of draft-ietf-httpapi-ratelimit-headers.
 */
export function createLimiter(store: Store, limit: RateLimit): Limiter {
  const limiter = new RateLimiterRedis({
    storeClient: store,
    points: limit.requests,
    duration: limit.seconds,
    keyPrefix: '',
    useRedisPackage: false,
  });
  const policy = `"key";q=${limit.requests};w=${limit.seconds}`;

  return async (response, base, keyId) => {
    const spent: unknown = await limiter.consume(`${base}rate:${keyId}`).catch((error: unknown) => error);
    if (!(spent instanceof RateLimiterRes)) throw spent;
    const reset = Math.max(1, Math.ceil(spent.msBeforeNext / 1000));
    response.setHeader('RateLimit-Policy', policy);
    response.setHeader('RateLimit', `"key";r=${Math.max(0, spent.remainingPoints)};t=${reset}`);
    if (spent.consumedPoints > limit.requests) {
      throw new ProblemError(
        problem('rate-limited', `This API key may send ${limit.requests} requests in ${limit.seconds} s.`, {
          retryAfterSeconds: reset,
        }),
      );
    }
  };
}
