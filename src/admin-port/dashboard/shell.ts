import { html, renderPage, type Content, type Html } from '../../lib/html.ts';
import { assetPath } from './assets.ts';

/** A whole page; a `live` one refreshes itself. */
export function renderShell({ title, body, live }: { title: string; body: Content; live: boolean }): string {
  const head = html`${icon}
    <link rel="stylesheet" href="${assetPath('style.css')}" />
    ${live ? html`<script type="module" src="${assetPath('client.js')}"></script>` : undefined}`;
  return renderPage(title, head, body);
}

export const icon: Html = html`<link rel="icon" href="${assetPath('icon.svg')}" />`;
