import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** How long a session lasts that nobody uses. */
export const sessionSeconds = 12 * 60 * 60;

export interface Sessions {
  /** Whether a token is the one; takes the same time whatever it is. */
  isToken: (token: string) => boolean;
  /** A new session's value: it proves that somebody knew the token, and tells nothing of it. */
  issue: () => string;
  /** Seconds left of a session; undefined where the value is none, or its time is over. */
  secondsLeft: (value: string) => number | undefined;
}

/**
 * Sessions without a store, so that they outlive a restart and hold on every instance: a value is its end, a nonce
 * and an HMAC of both under a key derived from the token. Changing the token ends them all.
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
