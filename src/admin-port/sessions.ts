import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** How long an unused session lasts. */
export const sessionSeconds = 12 * 60 * 60;

export interface Sessions {
  /** Whether the token is right, in constant time. */
  isToken: (token: string) => boolean;
  /** The value of a new session, which does not reveal the token. */
  issue: () => string;
  /** Seconds left of a session; undefined for an invalid or expired one. */
  secondsLeft: (value: string) => number | undefined;
}

/**
 * Stateless sessions, valid on every instance and after a restart: a value is an expiry, a nonce and an HMAC of both
 * with a key derived from the token. Changing the token ends all sessions.
 */
export function createSessions(token: string, now: () => number): Sessions {
  const mac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
  const key = mac(token, 'profile-bridge admin session');
  const tokenMac = mac(key, token);
  return {
    isToken: (given) => timingSafeEqual(mac(key, given), tokenMac),
    issue: () => {
      const claim = `${now() + sessionSeconds * 1000}.${randomBytes(12).toString('base64url')}`;
      return `${claim}.${mac(key, claim).toString('base64url')}`;
    },
    secondsLeft: (value) => {
      const match = /^((\d{1,16})\.[\w-]{16})\.([\w-]{43})$/.exec(value);
      if (match === null) return undefined;
      const [, claim = '', end = '', proof = ''] = match;
      if (!timingSafeEqual(Buffer.from(proof, 'base64url'), mac(key, claim))) return undefined;
      const left = (Number(end) - now()) / 1000;
      return left > 0 ? left : undefined;
    },
  };
}
