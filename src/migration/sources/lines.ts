const lineFeed = 10;

/** Takes the place of a line that is longer than the limit. */
export const hugeLine = Buffer.alloc(0);

/**
 * Splits a stream of bytes after line feeds, several lines at a time. What follows the last one comes at the end. Skips
 * each line that is longer than `maxBytes`.
 */
export async function* wholeLines(
  chunks: AsyncIterable<Buffer>,
  maxBytes = Number.POSITIVE_INFINITY,
): AsyncGenerator<Buffer> {
  let rest: Buffer[] = [];
  let length = 0;
  let isHuge = false;
  for await (const chunk of chunks) {
    let start = 0;
    const end = chunk.lastIndexOf(lineFeed) + 1;
    if (end > 0) {
      if (isHuge) {
        yield hugeLine;
        rest = [];
        start = chunk.indexOf(lineFeed) + 1;
      }
      const bytes = chunk.subarray(start, end);
      if (bytes.length > 0) yield rest.length === 0 ? bytes : Buffer.concat([...rest, bytes]);
      rest = [];
      length = 0;
      isHuge = false;
    }
    if (end < chunk.length) {
      rest.push(chunk.subarray(end));
      length += chunk.length - end;
    }
    if (length <= maxBytes) continue;
    isHuge = true;
    rest = [];
  }
  if (isHuge) yield hugeLine;
  else if (length > 0) yield Buffer.concat(rest);
}
