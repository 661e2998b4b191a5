export interface BatchLimits<Item> {
  /** The maximum number of items in a batch. */
  size?: number | undefined;
  /** The maximum total length of a batch, unless a single item is longer. */
  length?: { of: (item: Item) => number; most: number };
  /** Only items of the same kind share a batch. */
  kindOf?: (item: Item) => unknown;
}

/** Splits items into batches, in order; no batch is empty. */
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
