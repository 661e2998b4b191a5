import { isUtf8 } from 'node:buffer';
import type { Writable } from 'node:stream';

/** What the parser made of one part. */
type ParsedPart = { kind: 'file' } | { kind: 'text'; text: string; encoding: string };

/** Records what the parser makes of each part, in order. It emits nothing for a part that it skips. */
export function recordParts(parser: Writable): ParsedPart[] {
  const parts: ParsedPart[] = [];
  parser.on('file', () => parts.push({ kind: 'file' }));
  parser.on('field', (_name: string, text: string, { encoding }: { encoding: string }) => {
    parts.push({ kind: 'text', text, encoding });
  });
  return parts;
}

/**
 * What is wrong with the text parts of a body that the parser accepted; undefined if it read each of them as it is. The
 * parser skips parts without a name, drops text in a charset that it does not know, and replaces bytes that are not
 * UTF-8.
 */
export function textPartFault(
  body: Buffer,
  boundary: string,
  parsed: readonly ParsedPart[],
): string | undefined {
  const sent = [...partsOf(body, `--${boundary}`)];
  if (sent.length !== parsed.length)
    return 'A part is not readable: it needs a Content-Disposition of form-data, with a name.';
  for (const [index, { headers, content }] of sent.entries()) {
    const part = parsed[index];
    if (part?.kind !== 'text') continue;
    const charset = /^content-type:.*;\s*charset="?([^";\s]+)/im.exec(headers)?.[1];
    if (charset !== undefined && !/^(utf-?8|us-ascii)$/i.test(charset)) {
      return `A text part is in the charset ${charset.slice(0, 40)}; send UTF-8.`;
    }
    if (!/^(7bit|8bit|binary)$/.test(part.encoding)) {
      return `A text part has the Content-Transfer-Encoding ${part.encoding.slice(0, 40)}; send it as it is.`;
    }
    if (!isUtf8(content)) return 'A text part is not well-formed UTF-8.';
    if (part.text !== content.toString()) return 'A text part is not readable as UTF-8 text.';
  }
  return undefined;
}

/** The parts of a multipart body (RFC 2046 §5.1.1), up to the final boundary. */
function* partsOf(body: Buffer, delimiter: string): Generator<{ headers: string; content: Buffer }, void> {
  const first = body.indexOf(`\r\n${delimiter}`);
  let start = body.indexOf(delimiter) === 0 ? 0 : first === -1 ? -1 : first + 2;
  while (start !== -1) {
    const begin = start + delimiter.length;
    const end = body.indexOf(`\r\n${delimiter}`, begin);
    if (end === -1 || body.toString('latin1', begin, begin + 2) === '--') return;
    const split = body.indexOf('\r\n\r\n', begin);
    const isSplit = split !== -1 && split < end;
    yield {
      headers: body.toString('latin1', begin, isSplit ? split : end),
      content: isSplit ? body.subarray(Math.min(split + 4, end), end) : Buffer.alloc(0),
    };
    start = end + 2;
  }
}
