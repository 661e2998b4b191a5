/** As `Promise.all`, but rejects only when none of them is under way any more. */
export async function settleAll<Result>(all: readonly Promise<Result>[]): Promise<Result[]> {
  await Promise.allSettled(all);
  return await Promise.all(all);
}
