import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { getOrInsert } from '../src/lib/collections/get-or-insert.ts';

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

/** What each file imports, and what each folder imports of those beside it, types included. */
function importsByPlace(): Map<string, Set<string>> {
  const imports = new Map<string, Set<string>>();
  const add = (from: string, to: string): unknown =>
    getOrInsert(imports, from, () => new Set<string>()).add(to);
  for (const file of parts.flatMap(filesUnder).filter((name) => name.endsWith('.ts'))) {
    for (const imported of importsOf(file).filter((name) => name.endsWith('.ts'))) {
      const [from, to] = [relative(root, file), relative(root, imported)];
      add(from, to);
      const [path, other] = [from.split('/'), to.split('/')];
      const depth = path.findIndex((part, at) => part !== other[at]);
      // The tests of the scripts import these, which use what supports tests.
      if (depth > 0) add(path.slice(0, depth + 1).join('/'), other.slice(0, depth + 1).join('/'));
    }
  }
  return imports;
}

/** Files and folders that import each other in a circle; each circle begins and ends with the same one. */
function importCycles(): string[][] {
  const imports = importsByPlace();
  const cycles: string[][] = [];
  const finished = new Set<string>();
  const visit = (one: string, path: readonly string[]): void => {
    if (finished.has(one)) return;
    const start = path.indexOf(one);
    if (start >= 0) {
      cycles.push([...path.slice(start), one]);
      return;
    }
    for (const imported of imports.get(one) ?? []) visit(imported, [...path, one]);
    finished.add(one);
  };
  for (const one of imports.keys()) visit(one, []);
  return cycles;
}

describe('the architecture', () => {
  test('has imports in one direction only', () => {
    expect(backwardImports()).toEqual([]);
  });

  test('has no import cycles, of files or of folders beside each other', () => {
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
