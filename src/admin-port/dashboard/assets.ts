import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { baseStyle } from '../../lib/html.ts';

export interface Asset {
  type: string;
  bytes: Buffer;
}

const types: Record<string, string> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

const names = [
  'browser/client.js',
  'browser/chart.js',
  'browser/morph.js',
  'browser/style.css',
  'browser/icon.svg',
  'vendor/uPlot.esm.js',
  'vendor/uPlot.min.css',
] as const;

const files = names.map((name) => {
  const own = readFileSync(new URL(name, import.meta.url));
  const bytes = name === 'browser/style.css' ? Buffer.concat([Buffer.from(baseStyle), own]) : own;
  return { name, bytes, type: types[name.split('.').at(-1) ?? ''] ?? '' };
});

const hash = createHash('sha256');
for (const { bytes } of files) hash.update(bytes);
// In the path, not the query, so that it reaches what the modules import by relative paths.
const base = `/assets/${hash.digest('hex').slice(0, 12)}/`;

/** Everything the pages load, by path. The paths change with the content, so that they may be kept for ever. */
export const assets: ReadonlyMap<string, Asset> = new Map(
  files.map(({ name, ...asset }) => [`${base}${name}`, asset]),
);

/** The path of an asset. */
export function assetPath(name: (typeof names)[number]): string {
  return base + name;
}
