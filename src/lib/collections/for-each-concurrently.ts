import { settleAll } from './settle-all.ts';

/**
 * Does some work for each item, for at most `concurrency` of them at a time. Each failure ends one of so many workers: the
 * others go on with the items that are left. Rejects only once no work is under way.
 */
export async function forEachConcurrently<Item>(
  items: Iterable<Item>,
  concurrency: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = [...items].values();
  const worker = async (): Promise<void> => {
    for (const item of queue) await work(item);
  };
  await settleAll(Array.from({ length: concurrency }, worker));
}
