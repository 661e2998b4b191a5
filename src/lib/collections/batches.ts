export interface BatchLimits<Item> {
  /** Items of a batch at most. */
  size?: number | undefined;
  /** The length of a batch's items at most, unless one alone is longer. */
  length?: { of: (item: Item) => number; most: number };
  /** Only items of the same kind share a batch. */
  kindOf?: (item: Item) => unknown;
}

/** Items in order, some at a time; no batch is empty. */
export function* inBatches<Item>(
  items: Iterable<Item>,
  { size = Number.POSITIVE_INFINITY, length, kindOf = () => undefined }: BatchLimits<Item>,
): Generator<[Item, ...Item[]]> {
  let batch: [Item, ...Item[]] | undefined;
  let total = 0;
  for (const item of items) {
    const own = length?.of(item) ?? 0;
    if (batch !== undefined) {
      const isTooLong = length !== undefined && total + own > length.most;
      if (isTooLong || batch.length >= size || kindOf(item) !== kindOf(batch[0])) {
        yield batch;
        batch = undefined;
        total = 0;
      }
    }
    if (batch === undefined) batch = [item];
    else batch.push(item);
    total += own;
  }
  if (batch !== undefined) yield batch;
}
