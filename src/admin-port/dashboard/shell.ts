import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { baseStyle, html, iconSvg, renderPage, type Content, type Html } from '../../lib/html.ts';

const read = (name: string): string => readFileSync(new URL(`browser/${name}`, import.meta.url), 'utf8');
const files = {
  'client.js': read('client.js'),
  'morph.js': read('morph.js'),
  'style.css': baseStyle + read('style.css'),
  'icon.svg': iconSvg,
};

// The hash is in the path instead of the query, so that it also applies to relative imports of the modules.
const base = `/assets/${hash('sha256', Object.values(files).join('')).slice(0, 12)}/`;

/** All that pages load, by path. The paths change with the content, so that caches may keep assets forever. */
export const assets: ReadonlyMap<string, Buffer> = new Map(
  Object.entries(files).map(([name, text]) => [base + name, Buffer.from(text)]),
);

/** The link to the icon. */
export const icon: Html = html`<link rel="icon" href="${base}icon.svg" />`;

/** A whole page; a `live` one refreshes itself. */
export function renderShell(title: string, body: Content, live?: 'live'): string {
  const head = html`${icon}
    <link rel="stylesheet" href="${base}style.css" />
    ${live && html`<script type="module" src="${base}client.js"></script>`}`;
  return renderPage(`${title} · Profile Bridge`, head, body);
}
