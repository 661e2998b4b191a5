/**
 * Passes on what comes, and in the end calls `onEnd` with all of it; with nothing where it was longer than `longest`
 * bytes, broke off, or was not read to its end.
 */
export async function* observed(
  source: AsyncIterable<Buffer>,
  longest: number,
  onEnd: (whole: Buffer | undefined) => void,
): AsyncGenerator<Buffer, void> {
  let parts: Buffer[] | undefined = [];
  let bytes = 0;
  let whole: Buffer | undefined;
  try {
    for await (const part of source) {
      bytes += part.length;
      if (bytes > longest) parts = undefined;
      parts?.push(part);
      yield part;
    }
    whole = parts && Buffer.concat(parts, bytes);
  } finally {
    onEnd(whole);
  }
}
