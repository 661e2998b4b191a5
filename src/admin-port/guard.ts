import type { Request, RequestHandler, Response } from 'express';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { assetPath } from './dashboard/assets.ts';
import { html } from '../lib/html.ts';
import { tellOperator } from './problem.ts';
import { sessionSeconds, type Sessions } from './sessions.ts';

const cookieName = 'pb_admin';
const attemptsPerMinute = 10;

/** A judgement on a token somebody sent. */
type TokenCheck = { kind: 'right' } | { kind: 'wrong' } | { kind: 'wait'; seconds: number };

export type TokenVerifier = (request: Request, token: string) => Promise<TokenCheck>;

/** Judges tokens; whoever sends ten wrong ones within a minute (by address) must wait, even with a right one. */
export function createTokenVerifier(sessions: Sessions): TokenVerifier {
  const limiter = new RateLimiterMemory({ points: attemptsPerMinute, duration: 60 });
  return async (request, token) => {
    const address = request.socket.remoteAddress ?? '';
    try {
      await limiter.consume(address);
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw error;
      return { kind: 'wait', seconds: Math.max(1, Math.ceil(error.msBeforeNext / 1000)) };
    }
    if (!sessions.isToken(token)) return { kind: 'wrong' };
    await limiter.reward(address);
    return { kind: 'right' };
  };
}

/**
 * Lets through who sends the token (`Authorization: Bearer`, RFC 6750) or has signed in. Others get 401 with
 * `WWW-Authenticate`, or where a person opens a page, the way to the sign-in form and back.
 */
export function guard(sessions: Sessions, judge: TokenVerifier): RequestHandler {
  return async (request, response, next) => {
    const bearer = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
    if (bearer !== undefined) {
      const judgement = await judge(request, bearer);
      if (judgement.kind === 'right') next();
      else if (judgement.kind === 'wrong')
        sendUnauthorized(response, 'The token is not the right one.', true);
      else sendTooManyAttempts(response, judgement.seconds);
      return;
    }
    const left = sessionOf(request, sessions);
    if (left !== undefined) {
      if (left < sessionSeconds / 2) startSession(request, response, sessions);
      next();
    } else if (request.method === 'GET' && request.accepts(['json', 'html']) === 'html') {
      if (request.headers['sec-fetch-site'] === 'cross-site') sendOnce(request, response);
      else response.redirect(303, `/login?to=${encodeURIComponent(request.originalUrl)}`);
    } else sendUnauthorized(response, 'No token was sent, and nobody is signed in.', false);
  };
}

/** Signs the browser in, or prolongs its session. */
export function startSession(request: Request, response: Response, sessions: Sessions): void {
  response.cookie(cookieName, sessions.issue(), {
    ...cookieOptions(request),
    maxAge: sessionSeconds * 1000,
  });
}

/** Makes the browser forget its session. */
export function endSession(request: Request, response: Response): void {
  response.clearCookie(cookieName, cookieOptions(request));
}

/** Seconds left of the session the browser sent. */
export function sessionOf(request: Request, sessions: Sessions): number | undefined {
  const cookies = (request.headers.cookie ?? '').split(/; */).map((cookie) => cookie.split('='));
  for (const [name, value = ''] of cookies) {
    const left = name === cookieName ? sessions.secondsLeft(value) : undefined;
    if (left !== undefined) return left;
  }
  return undefined;
}

/** The text where it is a path on this very port, else the way home: nobody may be led elsewhere by it. */
export function ownPath(text: unknown): string {
  return typeof text === 'string' && /^\/(?![/\\])[\x21-\x7e]*$/.test(text) ? text : '/';
}

function sendTooManyAttempts(response: Response, seconds: number): void {
  tellOperator(response, {
    status: 429,
    title: 'Too many wrong tokens',
    detail: `This address has sent ${attemptsPerMinute} wrong tokens within a minute.`,
    remedy: `Wait ${seconds} seconds, and check ADMIN_TOKEN.`,
    headers: { 'Retry-After': String(seconds) },
  });
}

function sendUnauthorized(response: Response, detail: string, invalid: boolean): void {
  tellOperator(response, {
    status: 401,
    title: 'The admin port needs its token',
    detail,
    remedy: 'Send "Authorization: Bearer <ADMIN_TOKEN>", or sign in at /login.',
    headers: {
      'WWW-Authenticate': `Bearer realm="profile-bridge admin"${invalid ? ', error="invalid_token"' : ''}`,
    },
  });
}

/** A strict cookie stays at home when a link on another site leads here. Coming once more from here, it is sent. */
function sendOnce(request: Request, response: Response): void {
  const page = html`<!doctype html>
    <meta http-equiv="refresh" content="0; url=${ownPath(request.originalUrl)}" />
    <link rel="icon" href="${assetPath('browser/icon.svg')}" />
    <title>Profile Bridge</title>`;
  response.type('html').send(page.markup);
}

function cookieOptions(request: Request) {
  // Behind a proxy that ends TLS; whoever forges the header harms nobody but himself.
  const secure = request.secure || request.headers['x-forwarded-proto'] === 'https';
  return { httpOnly: true, sameSite: 'strict', path: '/', secure } as const;
}
