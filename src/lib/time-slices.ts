import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long work may go on before others have their turn, in ms: little beside what a request takes anyway. */
const share = 0.5;

let line: Promise<unknown> = Promise.resolve();

/** Waits for a turn of the event loop that nobody else who waits here gets: two long works take no longer turns than one. */
function turn(): Promise<unknown> {
  line = line.then(() => nextTurn());
  return line;
}

/**
 * The items in chunks of at most `size`, for work on very many of them: whenever it has gone on for half a
 * millisecond, the process first does what else has come in.
 */
export async function* yieldingChunks<Item>(items: Iterable<Item>, size = 200): AsyncGenerator<Item[], void> {
  let begun = performance.now();
  let chunk: Item[] = [];
  for (const item of items) {
    chunk.push(item);
    if (chunk.length < size) continue;
    yield chunk;
    chunk = [];
    if (performance.now() - begun < share) continue;
    await turn();
    begun = performance.now();
  }
  if (chunk.length > 0) yield chunk;
}
