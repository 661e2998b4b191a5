/** Which texts have been added, in a few bytes each. It errs on one side, and hardly ever: see `has`. */
export interface Sketch {
  /** Adds a text; tells what `has` said before. */
  add: (text: string) => boolean;
  /** False: it has not been added. True: it has, or it shares 64 bits with one that has, by chance or by design. */
  has: (text: string) => boolean;
}

/**
 * A set of 200,000 names would be rebuilt, and moved by the garbage collector, for milliseconds at a time; numbers in
 * typed arrays are not, and 256 small tables grow a little at a time.
 */
export function createSketch(): Sketch {
  const tables: Table[] = [];
  const tableOf = (high: number): Table => (tables[high >>> 24] ??= { slots: new Uint32Array(16), used: 0 });
  return {
    has: (text) => {
      const low = hash(text, lowSeed);
      const high = hash(text, highSeed);
      const { slots } = tableOf(high);
      return slots[slotOf(slots, low, high)] !== 0;
    },
    add: (text) => {
      const low = hash(text, lowSeed);
      const high = hash(text, highSeed);
      const table = tableOf(high);
      if (!put(table.slots, low, high)) return true;
      if (++table.used * 4 > table.slots.length) table.slots = enlarged(table.slots);
      return false;
    },
  };
}

/** A slot is two elements, the halves of a text's bits; zeros where it is free. At most half of them are in use. */
interface Table {
  slots: Uint32Array;
  used: number;
}

/** Where these bits are, or else the free slot where they belong. */
function slotOf(slots: Uint32Array, low: number, high: number): number {
  let slot = (low << 1) & (slots.length - 1);
  while (slots[slot] !== 0 && (slots[slot] !== low || slots[slot + 1] !== high)) {
    slot = (slot + 2) & (slots.length - 1);
  }
  return slot;
}

/** Whether they were not there yet. */
function put(slots: Uint32Array, low: number, high: number): boolean {
  const slot = slotOf(slots, low, high);
  if (slots[slot] !== 0) return false;
  slots[slot] = low;
  slots[slot + 1] = high;
  return true;
}

function enlarged(slots: Uint32Array): Uint32Array {
  const larger = new Uint32Array(slots.length * 2);
  for (let slot = 0; slot < slots.length; slot += 2) {
    const low = slots[slot] ?? 0;
    if (low !== 0) put(larger, low, slots[slot + 1] ?? 0);
  }
  return larger;
}

const { imul } = Math;
const lowSeed = 0x9747b28c;
const highSeed = 0x3c6ef372;

/** MurmurHash3 (32 bits) over the text's code units; never 0. */
function hash(text: string, seed: number): number {
  let h = seed;
  for (let at = 0; at < text.length; at++) {
    let k = imul(text.charCodeAt(at), 0xcc9e2d51);
    k = imul((k << 15) | (k >>> 17), 0x1b873593);
    h ^= k;
    h = imul((h << 13) | (h >>> 19), 5) + 0xe6546b64;
  }
  h ^= text.length;
  h = imul(h ^ (h >>> 16), 0x85ebca6b);
  h = imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0 || 1;
}
