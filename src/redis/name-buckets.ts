import { hash } from 'node:crypto';

/** The place of a form in the index, in hexadecimal, as lua/lib/names.lua has it: the lowest bits tell its bucket. */
export function placeOf(form: string): string {
  return hash('sha1', form).slice(0, 8);
}

/** The number of the bucket that has a place, of so many (linear hashing). */
export function bucketOf(place: string, count: number): number {
  const digest = Number.parseInt(place, 16);
  const range = 2 ** Math.ceil(Math.log2(count));
  const number = digest % range;
  return number < count ? number : digest % (range / 2);
}
