import { inBatches } from './collections/batches.ts';
import { yieldingChunks } from './time-slices.ts';

/** The UTF-8 bytes of a text in parts, which are made and encoded in time slices. */
export async function bytesOf(parts: Iterable<string>): Promise<Buffer> {
  const bytes: Buffer[] = [];
  for await (const [part] of yieldingChunks(parts, 1)) bytes.push(Buffer.from(part ?? ''));
  return Buffer.concat(bytes);
}

/** An object as JSON, in parts: it may have long lists. */
export function* jsonParts(object: object): Generator<string, void> {
  let before = '{';
  for (const [name, value] of Object.entries(object)) {
    yield `${before}${JSON.stringify(name)}:`;
    yield* Array.isArray(value) ? listParts(value) : [JSON.stringify(value)];
    before = ',';
  }
  yield '}';
}

function* listParts(list: readonly unknown[]): Generator<string, void> {
  let before = '[';
  for (const some of inBatches(list, { size: 100 })) {
    yield before + JSON.stringify(some).slice(1, -1);
    before = ',';
  }
  yield list.length === 0 ? '[]' : ']';
}
