import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long work may go on before the event loop has its turn, in ms: little compared with what a request takes. */
const sliceMs = 0.5;

let queue: Promise<unknown> = Promise.resolve();

/** Waits for a turn of the event loop. Each waiter gets a turn of its own, so two long jobs do not make turns longer. */
function ownTurn(): Promise<unknown> {
  queue = queue.then(() => nextTurn());
  return queue;
}

/**
 * The items in chunks of at most `size`, for work on very many of them: after every half millisecond of work the
 * event loop first handles what else has arrived.
 */
export async function* yieldingChunks<Item>(items: Iterable<Item>, size = 200): AsyncGenerator<Item[], void> {
  let begun = performance.now();
  let chunk: Item[] = [];
  for (const item of items) {
    chunk.push(item);
    if (chunk.length < size) continue;
    yield chunk;
    chunk = [];
    if (performance.now() - begun < sliceMs) continue;
    await ownTurn();
    begun = performance.now();
  }
  if (chunk.length > 0) yield chunk;
}
