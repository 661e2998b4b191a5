/** Numbers that look random, the same ones for the same seed. */
export type Random = ReturnType<typeof createRandom>;

/** The generator "mulberry32": small, and far better than a drill needs. */
export function createRandom(seed: number) {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (least: number, greatest: number): number =>
    least + Math.floor(next() * (greatest - least + 1));
  return {
    /** A whole number, both bounds included. */
    between,
    pick: <Item>(items: readonly Item[]): Item => {
      const item = items[between(0, items.length - 1)];
      if (item === undefined) throw new Error('nothing to pick from');
      return item;
    },
  };
}
