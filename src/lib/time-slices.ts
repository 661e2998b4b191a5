import { setImmediate as nextTurn } from 'node:timers/promises';
import { inBatches } from './collections/batches.ts';

/** How long to work before yielding to the event loop, in ms: short compared with the time of a request. */
const sliceMs = 0.5;

/** Jobs yield one after the other: each has a turn of the event loop to itself, so that turns stay short. */
let queue: Promise<unknown> = Promise.resolve();

/** Yields many items, and gives the event loop a turn after every half millisecond of work on them; throws if aborted. */
export async function* yieldingItems<Item>(
  items: Iterable<Item>,
  signal?: AbortSignal,
): AsyncGenerator<Item, void> {
  for await (const chunk of yieldingChunks(items, 1, signal)) yield* chunk;
}

/**
 * Splits many items into chunks of at most `size`. After every half millisecond of work on them, the event loop gets a
 * turn to handle other requests. Throws if aborted.
 */
export async function* yieldingChunks<Item>(
  items: Iterable<Item>,
  size = 200,
  signal?: AbortSignal,
): AsyncGenerator<Item[], void> {
  let begun = performance.now();
  let isFirst = true;
  for (const chunk of inBatches(items, { size })) {
    signal?.throwIfAborted();
    // Not after the last chunk: most lists have only one, and need not wait.
    if (!isFirst && performance.now() - begun >= sliceMs) {
      queue = queue.then(() => nextTurn());
      await queue;
      begun = performance.now();
    }
    isFirst = false;
    yield chunk;
  }
}
