import { html, type Content, type Html } from '../../lib/html.ts';
import { assetPath } from './assets.ts';

/** A whole page; a `live` one refreshes itself. */
export function renderShell({ title, body, live }: { title: string; body: Content; live: boolean }): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title}</title>
        ${icon}
        <link rel="stylesheet" href="${assetPath('style.css')}" />
        ${live ? html`<script type="module" src="${assetPath('client.js')}"></script>` : undefined}
      </head>
      <body>
        ${body}
      </body>
    </html> `.markup;
}

export const icon: Html = html`<link rel="icon" href="${assetPath('icon.svg')}" />`;
