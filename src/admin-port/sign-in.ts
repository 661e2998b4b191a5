import express, { Router } from 'express';
import { renderShell } from './dashboard/shell.ts';
import { html } from '../lib/html.ts';
import { endSession, ownPath, sessionOf, startSession, type TokenVerifier } from './guard.ts';
import type { Sessions } from './sessions.ts';

/** The sign-in form, its answer, and the way out: `/login` and `/logout`. */
export function signIn(sessions: Sessions, judge: TokenVerifier): Router {
  const router = Router();
  router.get('/login', (request, response) => {
    const to = ownPath(new URL(request.originalUrl, 'http://x').searchParams.get('to'));
    if (sessionOf(request, sessions) !== undefined) response.redirect(303, to);
    else response.send(renderForm(to));
  });
  router.post('/login', express.urlencoded({ extended: false, limit: '4kb' }), async (request, response) => {
    const { token, to } = (request.body ?? {}) as Record<string, unknown>;
    const judgement = await judge(request, typeof token === 'string' ? token.trim() : '');
    if (judgement.kind === 'right') {
      startSession(request, response, sessions);
      response.redirect(303, ownPath(to));
    } else if (judgement.kind === 'wrong') {
      response
        .status(401)
        .send(renderForm(ownPath(to), 'That is not the token. Please check and try again.'));
    } else {
      response.setHeader('Retry-After', String(judgement.seconds));
      const wait = `Too many wrong tokens. Please wait ${judgement.seconds} seconds, then try again.`;
      response.status(429).send(renderForm(ownPath(to), wait));
    }
  });
  router.post('/logout', (request, response) => {
    endSession(request, response);
    response.redirect(303, '/login');
  });
  return router;
}

function renderForm(to: string, trouble?: string): string {
  const mistake =
    trouble === undefined ? undefined : html`<p class="trouble" id="trouble" role="alert">${trouble}</p>`;
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
        ${trouble === undefined ? undefined : html`aria-invalid="true" aria-describedby="trouble"`}
      />
      ${mistake}
      <button>Sign in</button>
    </form>
    <p class="hint">The token is what the operator set as <code>ADMIN_TOKEN</code>.</p>
  </main>`;
  return renderShell({ title: 'Sign in · Profile Bridge', body, live: false });
}
