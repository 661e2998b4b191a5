import { randomInt } from 'node:crypto';

/** All probes for a key fall into one block of the memory, as large as a cache line: a look costs one access to it. */
const blocks = 2 ** 19;
const wordsPerBlock = 16;
const probes = 6;

// A number that differs in every process, so that no source can be made to collide on purpose.
const seed = randomInt(2 ** 31);

/**
 * Remembers any number of keys in a fixed 32 MiB (a Bloom filter): a key that was added is always recognized; one
 * that was not is taken for seen about once in ten million keys while there are a million, more often beyond.
 */
export interface Seen {
  /** Adds a key; whether it may have been added before. */
  add: (scope: string, key: string) => boolean;
  has: (scope: string, key: string) => boolean;
  readonly isEmpty: boolean;
}

/** An empty filter, which takes its memory when something is added. */
export function createSeen(): Seen {
  let words: Uint32Array | undefined;
  const visit = (scope: string, key: string, isAdded: boolean): boolean => {
    if (isAdded) words ??= new Uint32Array(blocks * wordsPerBlock);
    if (words === undefined) return false;
    const [low, high] = hash(scope, key);
    const block = (low & (blocks - 1)) * wordsPerBlock;
    const step = (low >>> 22) | 1;
    let isSeen = true;
    for (let probe = 0, bit = high; probe < probes; probe += 1, bit += step) {
      const at = block + ((bit >>> 5) & (wordsPerBlock - 1));
      const word = words[at] ?? 0;
      const mask = 1 << (bit & 31);
      if ((word & mask) !== 0) continue;
      isSeen = false;
      if (!isAdded) return false;
      words[at] = word | mask;
    }
    return isSeen;
  };
  return {
    add: (scope, key) => visit(scope, key, true),
    has: (scope, key) => visit(scope, key, false),
    get isEmpty() {
      return words === undefined;
    },
  };
}

/** Two numbers of 32 bits (cyrb53). */
function hash(scope: string, key: string): [number, number] {
  let low = 0xdeadbeef ^ seed;
  let high = 0x41c6ce57 ^ seed;
  for (let at = 0; at < scope.length; at += 1) {
    const code = scope.charCodeAt(at);
    low = Math.imul(low ^ code, 2654435761);
    high = Math.imul(high ^ code, 1597334677);
  }
  // No text holds this code, so it counts where one text ends and the other begins.
  low = Math.imul(low ^ 0x1ffff, 2654435761);
  high = Math.imul(high ^ 0x1ffff, 1597334677);
  for (let at = 0; at < key.length; at += 1) {
    const code = key.charCodeAt(at);
    low = Math.imul(low ^ code, 2654435761);
    high = Math.imul(high ^ code, 1597334677);
  }
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  return [low >>> 0, high >>> 0];
}
