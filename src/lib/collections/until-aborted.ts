/** Gives the values of an iteration until the signal is aborted, and then ends without waiting for the next one. */
export async function* untilAborted<Value>(
  values: AsyncIterable<Value>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Value> {
  const iterator = values[Symbol.asyncIterator]();
  let isAbandoned = false;
  try {
    for (;;) {
      const next = await unlessAborted(iterator.next(), signal);
      isAbandoned = next === undefined;
      if (next === undefined || next.done === true) return;
      yield next.value;
    }
  } finally {
    // This would wait for the value that is still to come.
    if (!isAbandoned) await iterator.return?.();
  }
}

/** What the promise resolves to; undefined as soon as the signal is aborted. */
export async function unlessAborted<Value>(
  promise: Promise<Value>,
  signal: AbortSignal | undefined,
): Promise<Value | undefined> {
  if (signal === undefined) return await promise;
  let onAbort = (): void => {};
  // A promise for the signal would keep every value alive that was ever raced against it.
  const aborted = new Promise<undefined>((resolve) => {
    onAbort = () => resolve(undefined);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
