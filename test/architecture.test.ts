import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from '@jest/globals';

const root = join(import.meta.dirname, '..');
const src = join(root, 'src');
const parts = [src, join(root, 'scripts'), join(root, 'test')];

/** Each layer imports only from layers of a smaller number. */
const layers: Record<string, number> = {
  lib: 0,
  domain: 1,
  contract: 2,
  redis: 2,
  media: 3,
  deprecation: 3,
  migration: 4,
  cutover: 4,
  api: 5,
  'admin-port': 5,
  cli: 6,
};

/** Files at the root of src: what every layer may use, and what assembles the whole. */
const shared = new Set(['log.ts', 'version.ts']);
const configuration = new Set(['config.ts']);

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  return [
    ...text.matchAll(/^(?:im|ex)port\b[^;']*\bfrom\s+'(\.[^']+)'/gm),
    ...text.matchAll(/\bimport\(\s*'(\.[^']+)'/g),
  ].map(([, path = '']) => join(dirname(file), path));
}

/** The folder of src that a file is in, or its name if it is at the root of src. */
function partOf(file: string): string {
  return relative(src, file).split('/')[0] ?? '';
}

/** The imports from a layer to one of the same or a higher number. */
function backwardImports(): string[] {
  const found: string[] = [];
  for (const file of filesUnder(src).filter((name) => name.endsWith('.ts'))) {
    const from = partOf(file);
    const layer = layers[from];
    if (layer === undefined) continue;
    for (const imported of importsOf(file)) {
      const to = partOf(imported);
      if (to === from || shared.has(to) || (from === 'cli' && configuration.has(to))) continue;
      const target = layers[to];
      if (target === undefined || target >= layer) {
        found.push(`${relative(root, file)} imports ${relative(root, imported)}`);
      }
    }
  }
  return found;
}

/** Files that import each other in a circle, types included; each circle begins and ends with the same file. */
function importCycles(): string[][] {
  const cycles: string[][] = [];
  const finished = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    if (finished.has(file)) return;
    const start = path.indexOf(file);
    if (start >= 0) {
      cycles.push([...path.slice(start), file].map((each) => relative(root, each)));
      return;
    }
    for (const imported of importsOf(file)) if (imported.endsWith('.ts')) visit(imported, [...path, file]);
    finished.add(file);
  };
  for (const file of parts.flatMap(filesUnder)) if (file.endsWith('.ts')) visit(file, []);
  return cycles;
}

describe('the architecture', () => {
  test('has imports in one direction only', () => {
    expect(backwardImports()).toEqual([]);
  });

  test('has no import cycles', () => {
    expect(importCycles()).toEqual([]);
  });

  test('has at most a dozen files at the root of every folder', () => {
    const counts = new Map<string, number>();
    for (const file of parts.flatMap(filesUnder))
      counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
    const crowded = [...counts].filter(([, count]) => count > 12);
    expect(crowded.map(([folder, count]) => `${relative(root, folder)}: ${count}`)).toEqual([]);
  });
});
