import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { RateLimiterMemory } from 'rate-limiter-flexible';

/** How long an unused session lasts. */
export const sessionSeconds = 12 * 60 * 60;

export const wrongTokensPerMinute = 10;

export type Sessions = ReturnType<typeof createSessions>;

/**
 * Checks the token, and issues stateless sessions to those who have it, valid on every instance and after a restart: a
 * session's value is an expiry, a nonce and an HMAC of both with a key derived from the token. Changing the token ends
 * all sessions.
 */
export function createSessions(token: string, now: () => number) {
  const mac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
  const key = mac(token, 'profile-bridge admin session');
  const tokenMac = mac(key, token);
  const wrongTokens = new RateLimiterMemory({ points: wrongTokensPerMinute, duration: 60 });
  return {
    /**
     * Compares a token in constant time. After ten wrong ones within a minute, further wrong ones from the address are
     * too many. The right one is always valid: behind a proxy, all clients share an address.
     */
    checkToken: async (given: string, address = ''): Promise<'valid' | 'wrong' | { retryAfter: number }> => {
      if (timingSafeEqual(mac(key, given), tokenMac)) return 'valid';
      const { consumedPoints, msBeforeNext } = await wrongTokens.penalty(address);
      if (consumedPoints <= wrongTokensPerMinute) return 'wrong';
      return { retryAfter: Math.max(1, Math.ceil(msBeforeNext / 1000)) };
    },
    /** The value of a new session, which does not reveal the token. */
    issue: (): string => {
      const claim = `${now() + sessionSeconds * 1000}.${randomBytes(12).toString('base64url')}`;
      return `${claim}.${mac(key, claim).toString('base64url')}`;
    },
    /** Seconds left of a session; undefined for an invalid or expired one. */
    secondsLeft: (value: string): number | undefined => {
      const match = /^((\d{1,16})\.[\w-]{16})\.([\w-]{43})$/.exec(value);
      if (match === null) return undefined;
      const [, claim = '', end = '', proof = ''] = match;
      if (!timingSafeEqual(Buffer.from(proof, 'base64url'), mac(key, claim))) return undefined;
      const left = (Number(end) - now()) / 1000;
      return left > 0 ? left : undefined;
    },
  };
}
