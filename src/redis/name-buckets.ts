import { hash } from 'node:crypto';

/** Hexadecimal digits of a place. */
export const placeLength = 8;

/** The place of a normalized name in the index, as lua/lib/names.lua has it: the lowest bits tell its bucket. */
export function placeOf(normalized: string): string {
  return hash('sha1', normalized).slice(0, placeLength);
}

/** The number of the bucket that has a place, of so many (linear hashing). */
export function bucketOf(place: string, count: number): number {
  const digest = Number.parseInt(place, 16);
  // Below the power of two that is not below the count.
  const mask = count === 1 ? 0 : 0xffffffff >>> Math.clz32(count - 1);
  const number = digest & mask;
  return number < count ? number : digest & (mask >>> 1);
}
