import type { CookieOptions, Request, RequestHandler, Response } from 'express';
import { html } from '../lib/html.ts';
import { icon } from './dashboard/shell.ts';
import { sendProblem } from './problem.ts';
import { sessionSeconds, wrongTokensPerMinute, type Sessions } from './sessions.ts';

const cookieName = 'pb_admin';
const sessionCookies = new RegExp(`(?:^|;) *${cookieName}=([^;]*)`, 'g');

/**
 * Lets requests through that carry the token (`Authorization: Bearer`, RFC 6750) or a session. Others get 401 with
 * `WWW-Authenticate`; a browser that opens a page is sent to the sign-in form instead.
 */
export function guard(sessions: Sessions): RequestHandler {
  return async (request, response, next) => {
    const bearer = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
    const secondsLeft = secondsLeftOf(request, sessions);
    response.locals['signedIn'] = secondsLeft !== undefined;
    if (bearer !== undefined) {
      const check = await sessions.checkToken(bearer, request.socket.remoteAddress);
      if (check === 'valid') next();
      else if (check === 'wrong') sendUnauthorized(response, 'The token is wrong.', true);
      else sendTooManyAttempts(response, check.retryAfter);
    } else if (secondsLeft !== undefined) {
      if (secondsLeft < sessionSeconds / 2) startSession(request, response, sessions);
      next();
    } else if (request.method === 'GET' && request.accepts(['json', 'html']) === 'html') {
      if (request.headers['sec-fetch-site'] === 'cross-site') reloadFromHere(request, response);
      else response.redirect(303, `/login?to=${encodeURIComponent(ownPath(request.originalUrl))}`);
    } else sendUnauthorized(response, 'This port requires a token.', false);
  };
}

/** The seconds left of a request's session; undefined without a valid session. */
export function secondsLeftOf(request: Request, sessions: Sessions): number | undefined {
  const cookies = (request.headers.cookie ?? '').matchAll(sessionCookies);
  return Array.from(cookies, ([, value = '']) => sessions.secondsLeft(value)).find(
    (left) => left !== undefined,
  );
}

/** Sets the cookie of a new session. */
export function startSession(request: Request, response: Response, sessions: Sessions): void {
  response.cookie(cookieName, sessions.issue(), { ...cookieOptions(request), maxAge: sessionSeconds * 1000 });
}

export function endSession(request: Request, response: Response): void {
  response.clearCookie(cookieName, cookieOptions(request));
}

/** The text if it is a path on this port, else `/`: prevents redirects to other sites. */
export function ownPath(text: unknown): string {
  return typeof text === 'string' && /^\/(?![/\\])[\x21-\x7e]*$/.test(text) ? text : '/';
}

function sendTooManyAttempts(response: Response, seconds: number): void {
  sendProblem(response, {
    status: 429,
    title: 'Too many wrong tokens',
    detail: `More than ${wrongTokensPerMinute} wrong tokens came from this address within a minute.`,
    remedy: `Check ADMIN_TOKEN. The right token is accepted at once, wrong ones again in ${seconds} seconds.`,
    headers: { 'Retry-After': String(seconds) },
  });
}

function sendUnauthorized(response: Response, detail: string, invalid: boolean): void {
  sendProblem(response, {
    status: 401,
    title: 'The admin port requires a token',
    detail,
    remedy: 'Send "Authorization: Bearer <ADMIN_TOKEN>", or sign in at /login.',
    headers: {
      'WWW-Authenticate': `Bearer realm="profile-bridge admin"${invalid ? ', error="invalid_token"' : ''}`,
    },
  });
}

/** Lets the browser reload the page: it sends no SameSite=Strict cookie when a link from another site is followed. */
function reloadFromHere(request: Request, response: Response): void {
  const page = html`<!doctype html>
    <meta http-equiv="refresh" content="0; url=${ownPath(request.originalUrl)}" />
    ${icon}
    <title>Profile Bridge</title>`;
  response.type('html').send(page.markup);
}

function cookieOptions(request: Request): CookieOptions {
  // Set by a proxy that terminates TLS. A client that forges it only affects its own cookie.
  const secure = request.secure || request.headers['x-forwarded-proto'] === 'https';
  return { httpOnly: true, sameSite: 'strict', path: '/', secure };
}
