import { html, type Content } from '../../lib/html.ts';
import { assetPath } from './assets.ts';

/** What the module imports is named too, so that a browser need not find out step by step. */
const script = html`${(['browser/chart.js', 'browser/morph.js', 'vendor/uPlot.esm.js'] as const).map(
    (name) => html`<link rel="modulepreload" href="${assetPath(name)}" />`,
  )}
  <script type="module" src="${assetPath('browser/client.js')}"></script>`;

/** A whole page: what all pages of the admin port have in common around `body`. */
export function renderShell({ title, body, live }: { title: string; body: Content; live: boolean }): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title}</title>
        <link rel="icon" href="${assetPath('browser/icon.svg')}" />
        ${live ? html`<link rel="stylesheet" href="${assetPath('vendor/uPlot.min.css')}" />` : undefined}
        <link rel="stylesheet" href="${assetPath('browser/style.css')}" />
        ${live ? script : undefined}
      </head>
      <body>
        ${body}
      </body>
    </html> `.markup;
}
