import { isAscii, isUtf8 } from 'node:buffer';
import { isFields, type Fields } from '../../records/shapes.ts';
import { createBatchBuilder, maxRowBytes, tooLong } from '../batches.ts';
import { hugeLine, wholeLines } from '../lines.ts';
import type { Batch, ReadOptions } from '../source.ts';
import { openFile, type DataFile } from './file.ts';
import type { Projection } from './pointers.ts';

const openingBrace = 123;
const oneObjectPerLine = 'write one object per line, such as with jq -c';
const cutShort = 'is cut short: the file ends in the middle of this line';

/**
 * Streams the objects of a newline-delimited JSON file. A line that is not a JSON object becomes an error of its own;
 * it never hides the lines after it. Empty lines, a byte order mark and CRLF are fine.
 */
export async function* readNdjson(
  file: DataFile,
  options: ReadOptions,
  projection?: Projection,
): AsyncGenerator<Batch> {
  const { chunks, progress } = openFile(file);
  const batch = createBatchBuilder(file.entity, options, (number: number) => `${file.name}:${number}`);
  let line = 0;
  for await (const block of wholeLines(chunks, maxRowBytes)) {
    for (const { found, bytes } of block === hugeLine ? [hugeRow] : readLines(block)) {
      line += 1;
      if (typeof found === 'string') batch.refuse(found, line);
      else if (found !== undefined) batch.add(projection?.project(found) ?? found, bytes, line);
      if (batch.isFull) yield batch.cut(progress());
    }
  }
  yield { ...batch.cut(1), warnings: projection?.warnings() };
}

/** An object, or why there is none; undefined for an empty line. */
type Found = Fields | string | undefined;

const hugeRow = { found: tooLong, bytes: 0 };

const beyondAscii = /[\x80-\xff]/;

/**
 * Decoding a whole block as Latin-1, where a character is a byte, and slicing its text costs a fraction of decoding
 * line by line; only lines that are not ASCII are decoded by themselves.
 */
function* readLines(block: Buffer): Generator<{ found: Found; bytes: number }> {
  const ascii = isAscii(block);
  const text = block.toString('latin1');
  for (let from = 0; from < text.length;) {
    const end = text.indexOf('\n', from);
    const isOpen = end === -1;
    const to = isOpen ? text.length : end;
    const line = text.slice(from, to);
    const bytes = to - from;
    if (bytes > maxRowBytes) yield hugeRow;
    else if (ascii || !beyondAscii.test(line)) yield { found: readLine(line, isOpen), bytes };
    else yield { found: readUnicodeLine(block.subarray(from, to), isOpen), bytes };
    from = to + 1;
  }
}

function readUnicodeLine(bytes: Buffer, open: boolean): Found {
  if (isUtf8(bytes)) return readLine(bytes.toString('utf8'), open);
  return open ? cutShort : 'is not valid UTF-8';
}

/** An open line has no line feed and may be half-written. */
function readLine(json: string, open: boolean): Found {
  const usual = json.charCodeAt(0) === openingBrace;
  if (!usual && json.trim() === '') return undefined;
  try {
    const raw: unknown = JSON.parse(json);
    if (Array.isArray(raw)) return `is a JSON array: ${oneObjectPerLine} .[]`;
    return isFields(raw) ? raw : 'is not a JSON object';
  } catch (error) {
    if (open) return cutShort;
    const begun = /^\s*(\[|\{(?=\s*$))/.exec(json)?.[1];
    if (begun !== undefined)
      return `begins a value of several lines: ${oneObjectPerLine} ${begun === '[' ? '.[]' : '.'}`;
    if (json.includes('\0')) return 'is not valid JSON: it holds NUL bytes';
    return `is not valid JSON${placeOf(error)}`;
  }
}

/** Where JSON.parse gave up; its message itself quotes the line, which may hold an API key. */
function placeOf(error: unknown): string {
  const place = error instanceof Error ? / at position (\d+)/.exec(error.message)?.[1] : undefined;
  return place === undefined ? '' : ` (at character ${Number(place) + 1})`;
}
