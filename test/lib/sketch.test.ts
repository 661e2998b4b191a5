import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createSketch } from '../../src/lib/sketch.ts';

test('a sketch tells what was added from what was not', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' })), fc.array(fc.string()), (texts, others) => {
      const sketch = createSketch();
      const added = new Set<string>();
      for (const text of texts) {
        expect(sketch.add(text)).toBe(added.has(text));
        added.add(text);
      }
      for (const text of [...texts, ...others]) expect(sketch.has(text)).toBe(added.has(text));
    }),
  );
});

test('among fifty thousand names that differ in one place, none is taken for another', () => {
  const sketch = createSketch();
  const names = Array.from({ length: 50_000 }, (_, n) => `name-${n}`);
  expect(names.filter((name) => sketch.add(name))).toEqual([]);
  expect(names.every((name) => sketch.has(name))).toBe(true);
  expect(names.filter((name) => sketch.has(`${name}x`))).toEqual([]);
});
