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
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(lineFeed) + 1;
    if (end > 0) {
      const isHuge = length > maxBytes;
      if (isHuge) yield hugeLine;
      const bytes = chunk.subarray(isHuge ? chunk.indexOf(lineFeed) + 1 : 0, end);
      if (bytes.length > 0) yield rest.length === 0 ? bytes : Buffer.concat([...rest, bytes]);
      rest = [];
      length = 0;
    }
    const begun = chunk.subarray(end);
    length += begun.length;
    if (length > maxBytes) rest = [];
    else if (begun.length > 0) rest.push(begun);
  }
  if (length > maxBytes) yield hugeLine;
  else if (length > 0) yield Buffer.concat(rest);
}
