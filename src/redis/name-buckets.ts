import { hash } from 'node:crypto';

/** The place of a form in the index, in hexadecimal, as lua/lib/names.lua has it: the lowest bits tell its bucket. */
export function placeOf(form: string): string {
  return hash('sha1', form).slice(0, 8);
}

/** The number of the bucket that has a place, of so many (linear hashing). */
export function bucketOf(place: string, count: number): number {
  const digest = Number.parseInt(place, 16);
  // The power of two that is not below the count.
  const range = 2 ** (32 - Math.clz32(count - 1));
  const number = digest & (range - 1);
  return number < count ? number : digest & (range / 2 - 1);
}
