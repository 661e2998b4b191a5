import { settleAll } from './settle-all.ts';

/**
 * Does some work for each item, for `most` of them at a time. The other items are still worked on after a failure, but
 * not after `most` of them. Rejects only once no work is under way.
 */
export async function forEachConcurrently<Item>(
  items: Iterable<Item>,
  most: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = [...items].values();
  const worker = async (): Promise<void> => {
    for (const item of queue) await work(item);
  };
  await settleAll(Array.from({ length: most }, worker));
}
