import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { baseStyle } from '../../lib/html.ts';

const types = {
  'client.js': 'text/javascript; charset=utf-8',
  'morph.js': 'text/javascript; charset=utf-8',
  'style.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
} as const;

const files = Object.entries(types).map(([name, type]) => {
  const own = readFileSync(new URL(`browser/${name}`, import.meta.url));
  const bytes = name === 'style.css' ? Buffer.concat([Buffer.from(baseStyle), own]) : own;
  return { name, bytes, type };
});

const hash = createHash('sha256');
for (const { bytes } of files) hash.update(bytes);
// In the path instead of the query, so that it also applies to relative imports of the modules.
const base = `/assets/${hash.digest('hex').slice(0, 12)}/`;

/** Everything the pages load, by path. The paths change with the content, so that caches may keep assets forever. */
export const assets: ReadonlyMap<string, { bytes: Buffer; type: string }> = new Map(
  files.map(({ name, ...asset }) => [base + name, asset]),
);

/** The path of an asset. */
export function assetPath(name: keyof typeof types): string {
  return base + name;
}
