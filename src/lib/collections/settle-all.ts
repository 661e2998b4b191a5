/** Like `Promise.all`, but rejects only once all promises have settled. */
export async function settleAll<Result>(all: readonly Promise<Result>[]): Promise<Result[]> {
  await Promise.allSettled(all);
  return await Promise.all(all);
}
