/** Yields the values of an iteration until the signal is aborted, and then ends without waiting for the next one. */
export async function* untilAborted<Value>(
  values: AsyncIterable<Value>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Value> {
  const iterator = values[Symbol.asyncIterator]();
  let isAbandoned = false;
  try {
    for (;;) {
      if (signal?.aborted === true) return;
      const next = await unlessAborted(iterator.next(), signal);
      isAbandoned = next === undefined;
      if (next === undefined || next.done === true) return;
      yield next.value;
    }
  } finally {
    // For an abandoned iteration, this would wait for the next value.
    if (!isAbandoned) await iterator.return?.();
  }
}

/** Resolves as the promise does, or to undefined as soon as the signal is aborted. */
export async function unlessAborted<Value>(
  promise: Promise<Value>,
  signal: AbortSignal | undefined,
): Promise<Value | undefined> {
  if (signal === undefined) return await promise;
  return await new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(undefined);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort);
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
