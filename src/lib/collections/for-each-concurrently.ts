import { settleAll } from './settle-all.ts';

/** Does some work for each item, for `most` of them at a time. Rejects only when none of it is under way any more. */
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
