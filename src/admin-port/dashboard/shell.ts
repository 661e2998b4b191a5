import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { baseStyle, html, renderPage, type Content, type Html } from '../../lib/html.ts';

const files = ['client.js', 'morph.js', 'style.css', 'icon.svg'].map((name) => {
  const own = readFileSync(new URL(`browser/${name}`, import.meta.url));
  return [name, name === 'style.css' ? Buffer.concat([Buffer.from(baseStyle), own]) : own] as const;
});

const hash = createHash('sha256');
for (const [, bytes] of files) hash.update(bytes);
// The hash is in the path instead of the query, so that it also applies to relative imports of the modules.
const base = `/assets/${hash.digest('hex').slice(0, 12)}/`;

/** All that pages load, by path. The paths change with the content, so that caches may keep assets forever. */
export const assets: ReadonlyMap<string, Buffer> = new Map(
  files.map(([name, bytes]) => [base + name, bytes]),
);

/** The link to the icon. */
export const icon: Html = html`<link rel="icon" href="${base}icon.svg" />`;

/** A whole page; a `live` one refreshes itself. */
export function renderShell(title: string, body: Content, live?: 'live'): string {
  const head = html`${icon}
    <link rel="stylesheet" href="${base}style.css" />
    ${live && html`<script type="module" src="${base}client.js"></script>`}`;
  return renderPage(title, head, body);
}
