/** Like `Promise.all`, but rejects only once all promises have settled. */
export async function settleAll<Result>(all: readonly Result[]): Promise<Awaited<Result>[]> {
  await Promise.allSettled(all);
  return await Promise.all(all);
}
