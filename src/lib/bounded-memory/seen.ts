import { randomInt } from 'node:crypto';

/** Sizes of the filters in words: when one is full, the next one is used, and the last takes all remaining keys. */
const sizes = [2 ** 18, 2 ** 21, 2 ** 23];
/** A filter is full when it has this many keys for each word. */
const keysPerWord = 0.5;
/** All probes for a key fall into one block the size of a cache line, so a lookup costs one memory access. */
const wordsPerBlock = 16;
const probes = 10;

/** A number that differs each time, so that no source can be crafted to collide. */
export function newSeed(): number {
  return randomInt(2 ** 31);
}

/**
 * Remembers any number of keys in 41 MiB at most (Bloom filters): a key that was added is always recognized; one that
 * was not is taken for seen about once in ten million keys, and more often beyond some millions.
 */
export type Seen = ReturnType<typeof createSeen>;

/**
 * Nothing seen yet; the memory is taken as keys are added. Not the filter of a library: the quickest one, bloomfilter
 * 1.1, takes three times as long for a key, and a row of a database has two. With the same seed, the same keys are taken
 * for seen.
 */
export function createSeen(seed = newSeed()) {
  const filters: Uint32Array[] = [];
  let room = 0;
  return {
    /** Adds a key; returns whether it may have been added before. */
    add: (namespace: string, key: string): boolean => {
      if (room === 0) {
        const size = sizes[filters.length] ?? 0;
        filters.push(new Uint32Array(size));
        room = filters.length === sizes.length ? Number.POSITIVE_INFINITY : size * keysPerWord;
      }
      digest(seed, namespace, key);
      const last = filters.at(-1);
      for (const words of filters) if (probe(words, words === last)) return true;
      room -= 1;
      return false;
    },
    has: (namespace: string, key: string): boolean => {
      digest(seed, namespace, key);
      for (const words of filters) if (probe(words, false)) return true;
      return false;
    },
    get isEmpty(): boolean {
      return filters.length === 0;
    },
  };
}

/** Looks for the key whose digest was made last, and adds it if `add` is set; returns whether it was there. */
function probe(words: Uint32Array, add: boolean): boolean {
  const start = (low & (words.length / wordsPerBlock - 1)) * wordsPerBlock;
  let isThere = true;
  for (let at = 0, bits = high; at < probes; at += 1) {
    const position = start + (bits >>> 28);
    const mask = 1 << ((bits >>> 23) & 31);
    const word = words[position] ?? 0;
    if ((word & mask) === 0) {
      if (!add) return false;
      isThere = false;
      words[position] = word | mask;
    }
    bits = (Math.imul(bits, 0x9e3779b1) + low) | 0;
  }
  return isThere;
}

/** A key's digest (cyrb53), kept here since two numbers returned would have to be allocated. */
let [low, high] = [0, 0];

function digest(seed: number, namespace: string, key: string): void {
  [low, high] = [0xdeadbeef ^ seed, 0x41c6ce57 ^ seed];
  mix(namespace);
  // No text contains this code, so it separates one text from the next.
  low = Math.imul(low ^ 0x1ffff, 2654435761);
  high = Math.imul(high ^ 0x1ffff, 1597334677);
  mix(key);
  const [one, two] = [low, high];
  low = Math.imul(one ^ (one >>> 16), 2246822507) ^ Math.imul(two ^ (two >>> 13), 3266489909);
  high = Math.imul(two ^ (two >>> 16), 2246822507) ^ Math.imul(one ^ (one >>> 13), 3266489909);
}

function mix(text: string): void {
  let [one, two] = [low, high];
  for (let at = 0, { length } = text; at < length; at += 1) {
    // Called like this it is inlined; as a method of the text it would be looked up for each character, at four times
    // the cost.
    const code = String.prototype.charCodeAt.call(text, at);
    one = Math.imul(one ^ code, 2654435761);
    two = Math.imul(two ^ code, 1597334677);
  }
  low = one;
  high = two;
}
