import express, { Router } from 'express';
import { html } from '../lib/html.ts';
import { renderShell } from './dashboard/shell.ts';
import { endSession, ownPath, secondsLeftOf, startSession } from './guard.ts';
import type { Sessions } from './sessions.ts';

/** The sign-in form at `/login`, and `/logout`. */
export function signIn(sessions: Sessions): Router {
  const router = Router();
  router.get('/login', (request, response) => {
    const to = ownPath(new URL(request.originalUrl, 'http://x').searchParams.get('to'));
    if (secondsLeftOf(request, sessions) !== undefined) response.redirect(303, to);
    else response.send(renderForm(to));
  });
  router.post('/login', express.urlencoded({ extended: false, limit: '4kb' }), async (request, response) => {
    const { token, to } = (request.body ?? {}) as Record<string, unknown>;
    const given = typeof token === 'string' ? token.trim() : '';
    const check = await sessions.checkToken(given, request.socket.remoteAddress);
    if (check === 'valid') {
      startSession(request, response, sessions);
      response.redirect(303, ownPath(to));
    } else if (check === 'wrong') {
      response.status(401).send(renderForm(ownPath(to), 'Wrong token. Please check it and try again.'));
    } else {
      response.setHeader('Retry-After', String(check.retryAfter));
      response.status(429).send(renderForm(ownPath(to), 'Too many wrong tokens. Check the token first.'));
    }
  });
  router.post('/logout', (request, response) => {
    endSession(request, response);
    response.redirect(303, '/login');
  });
  return router;
}

function renderForm(to: string, error?: string): string {
  const body = html`<main class="sign-in">
    <h1>Profile Bridge</h1>
    <p>Sign in to see who still calls the deprecated API.</p>
    <form method="post" action="/login">
      <input type="hidden" name="to" value="${to}" />
      <label for="token">Admin token</label>
      <input
        id="token"
        name="token"
        type="password"
        autocomplete="current-password"
        required
        autofocus
        ${error && html`aria-invalid="true" aria-describedby="error"`}
      />
      ${error && html`<p class="error" id="error" role="alert">${error}</p>`}
      <button>Sign in</button>
    </form>
    <p class="hint">The operator has set it as <code>ADMIN_TOKEN</code>.</p>
  </main>`;
  return renderShell('Sign in', body);
}
