import { expect, test } from '@jest/globals';
import { assert, constantFrom, property, string } from 'fast-check';
import { newPictureName, pictureTypeOf, type PictureExtension } from '../../src/media/store.ts';

test('a new name is random, safe in a URL, and shows its type', () => {
  const names = Array.from({ length: 1000 }, () => newPictureName('jpg'));
  expect(new Set(names).size).toBe(1000);
  for (const name of names) expect(encodeURIComponent(name)).toBe(name);
  const types = (['jpg', 'png', 'webp', 'gif'] satisfies PictureExtension[]).map((extension) =>
    pictureTypeOf(newPictureName(extension)),
  );
  expect(types).toEqual(['image/jpeg', 'image/png', 'image/webp', 'image/gif']);
});

test.each([
  '',
  '.jpg',
  '../../etc/passwd',
  `../${'a'.repeat(19)}.jpg`,
  `${'a'.repeat(21)}.jpg`,
  `${'a'.repeat(23)}.jpg`,
  `${'a'.repeat(22)}.svg`,
  `${'a'.repeat(22)}.JPG`,
  `${'a'.repeat(22)}.jpg\n`,
  `${'a'.repeat(22)}.jpg\0`,
  `${'a'.repeat(22)}.jpg/`,
  `${'a'.repeat(10)}/${'a'.repeat(11)}.jpg`,
])('%j is not a picture name', (name) => {
  expect(pictureTypeOf(name)).toBeUndefined();
});

test('no string with a character that is special in a path is a picture name', () => {
  assert(
    property(
      string(),
      constantFrom('/', '\\', '..', '\0', '%', '\n', ' '),
      string(),
      (before, sign, after) => {
        expect(pictureTypeOf(before + sign + after)).toBeUndefined();
      },
    ),
  );
});
