import { settleAll } from './settle-all.ts';

/**
 * Does some work for each item, for `most` of them at a time. After a failure the other items are still worked on, until
 * there are `most` failures. Rejects only when no work is under way any more.
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
