const bits = 2 ** 26;

/**
 * A set of fingerprints in a fixed 8 MiB: what was added is in it; of what was not, a little may seem to be.
 * So it narrows down what has to be looked at closely.
 */
export interface Marks {
  add: (fingerprint: number) => void;
  has: (fingerprint: number) => boolean;
  readonly isEmpty: boolean;
}

/** An empty set, which takes its memory when something is added. */
export function createMarks(): Marks {
  let bytes: Uint8Array | undefined;
  return {
    add: (fingerprint) => {
      bytes ??= new Uint8Array(bits / 8);
      const bit = fingerprint % bits;
      bytes[bit >>> 3] = (bytes[bit >>> 3] ?? 0) | (1 << (bit & 7));
    },
    has: (fingerprint) => {
      if (bytes === undefined) return false;
      const bit = fingerprint % bits;
      return ((bytes[bit >>> 3] ?? 0) & (1 << (bit & 7))) !== 0;
    },
    get isEmpty() {
      return bytes === undefined;
    },
  };
}
