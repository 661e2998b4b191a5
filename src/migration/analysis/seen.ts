import { randomInt } from 'node:crypto';

const bits = 28;
const probes = 4;

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
  let bytes: Uint8Array | undefined;
  const visit = (scope: string, key: string, isAdded: boolean): boolean => {
    if (isAdded) bytes ??= new Uint8Array(2 ** (bits - 3));
    if (bytes === undefined) return false;
    const [low, high] = hash(scope, key);
    let isSeen = true;
    for (let probe = 0; probe < probes; probe += 1) {
      const bit = (low + Math.imul(probe, high | 1)) >>> (32 - bits);
      const mask = 1 << (bit & 7);
      const byte = bytes[bit >>> 3] ?? 0;
      if ((byte & mask) !== 0) continue;
      isSeen = false;
      if (!isAdded) return false;
      bytes[bit >>> 3] = byte | mask;
    }
    return isSeen;
  };
  return {
    add: (scope, key) => visit(scope, key, true),
    has: (scope, key) => visit(scope, key, false),
    get isEmpty() {
      return bytes === undefined;
    },
  };
}

/** Two numbers of 32 bits (cyrb53). */
function hash(scope: string, key: string): [number, number] {
  let low = 0xdeadbeef ^ seed;
  let high = 0x41c6ce57 ^ seed;
  const mix = (code: number): void => {
    low = Math.imul(low ^ code, 2654435761);
    high = Math.imul(high ^ code, 1597334677);
  };
  for (let at = 0; at < scope.length; at += 1) mix(scope.charCodeAt(at));
  // No text holds this code, so it counts where one text ends and the other begins.
  mix(0x1ffff);
  for (let at = 0; at < key.length; at += 1) mix(key.charCodeAt(at));
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  return [low, high];
}
