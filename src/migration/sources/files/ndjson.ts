import { isAscii, isUtf8 } from 'node:buffer';
import { belongsTo, createBatchBuilder } from '../batches.ts';
import type { Batch, ReadOptions, Row } from '../source.ts';
import { fromPosition, maxRowBytes, openBytes, toPosition } from './file.ts';
import type { DataFile, FileVersion } from './file.ts';

const lineFeed = 10;
const openingBrace = 123;
const cutShort = 'is cut short: the file ends in the middle of this line';

/**
 * Streams the objects of a newline-delimited JSON file. A line that is not a JSON object becomes an error of its own;
 * it never hides the lines after it. Empty lines, a byte order mark and CRLF are fine.
 */
export async function* readNdjson(
  file: DataFile,
  version: FileVersion,
  options: ReadOptions,
  project?: (row: unknown) => unknown,
): AsyncGenerator<Batch> {
  const start = fromPosition(options.after, version);
  const { chunks, consumed } = openBytes(file, start.offset);
  const batch = createBatchBuilder<number>(options.size, (number) => `${file.name}:${number}`);
  let { offset, line } = start;
  let cutAt = offset;
  const cut = (): Batch => {
    cutAt = offset;
    const progress = version.size === 0 ? 1 : Math.min(1, consumed() / version.size);
    return batch.cut({ progress, end: toPosition({ offset, line }, version) });
  };

  for await (const block of wholeLines(chunks)) {
    const blockStart = offset;
    for (const { row, end } of block.kind === 'huge'
      ? [hugeLine(block.length)]
      : readLines(block, line === 0)) {
      line += 1;
      offset = blockStart + end;
      if (row === undefined) continue;
      const kept = project !== undefined && row.error === undefined ? { ...row, raw: project(row.raw) } : row;
      if (kept.error === undefined && !belongsTo(options.organizationId, kept.raw)) continue;
      batch.add(kept, line);
      if (batch.isFull) yield cut();
    }
  }
  if (offset > cutAt) yield cut();
}

interface LineBlock {
  readonly kind: 'lines';
  readonly bytes: Buffer;
}

/** Cuts a stream of bytes behind line feeds; a line longer than the limit is passed over and only measured. */
async function* wholeLines(
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<LineBlock | { readonly kind: 'huge'; readonly length: number }> {
  let rest: Buffer[] = [];
  let restLength = 0;
  let passedOver = 0;
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(lineFeed) + 1;
    if (end > 0) {
      let bytes = chunk.subarray(0, end);
      if (passedOver > 0) {
        const first = chunk.indexOf(lineFeed) + 1;
        yield { kind: 'huge', length: passedOver + restLength + first };
        bytes = chunk.subarray(first, end);
      } else if (restLength > 0) {
        bytes = Buffer.concat([...rest, bytes]);
      }
      if (bytes.length > 0) yield { kind: 'lines', bytes };
      rest = [];
      restLength = 0;
      passedOver = 0;
    }
    if (end < chunk.length) {
      rest.push(chunk.subarray(end));
      restLength += chunk.length - end;
    }
    if (restLength > maxRowBytes) {
      passedOver += restLength;
      rest = [];
      restLength = 0;
    }
  }
  if (passedOver > 0) yield { kind: 'huge', length: passedOver + restLength };
  else if (restLength > 0) yield { kind: 'lines', bytes: Buffer.concat(rest) };
}

interface Line {
  /** Undefined for an empty line. */
  readonly row: Row | undefined;
  /** Where the line ends, in bytes from the block's beginning, its line feed included. */
  readonly end: number;
}

function hugeLine(length: number): Line {
  return { row: { error: 'is longer than 1 MiB' }, end: length };
}

const beyondAscii = /[\x80-\xff]/;

/**
 * Decoding a whole block as Latin-1, where a character is a byte, and slicing its text costs a fraction of decoding
 * line by line; only lines that are not ASCII are decoded by themselves.
 */
function* readLines({ bytes }: LineBlock, first: boolean): Generator<Line> {
  const ascii = isAscii(bytes);
  const text = bytes.toString('latin1');
  for (let from = 0; from < text.length;) {
    const found = text.indexOf('\n', from);
    const to = found === -1 ? text.length : found;
    const end = found === -1 ? to : to + 1;
    const line = text.slice(from, to);
    const open = end === to;
    if (to - from > maxRowBytes) yield hugeLine(end);
    else if (ascii || !beyondAscii.test(line)) yield { row: readLine(line, open), end };
    else yield { row: readUnicodeLine(bytes.subarray(from, to), first && from === 0, open), end };
    from = end;
  }
}

function readUnicodeLine(bytes: Buffer, first: boolean, open: boolean): Row | undefined {
  if (!isUtf8(bytes)) return { error: open ? cutShort : 'is not valid UTF-8' };
  const line = bytes.toString('utf8');
  return readLine(first && line.startsWith('\uFEFF') ? line.slice(1) : line, open);
}

/** One line as a row, or undefined for an empty one; an open line has no line feed and may be half-written. */
function readLine(json: string, open: boolean): Row | undefined {
  const usual = json.charCodeAt(0) === openingBrace;
  if (!usual && json.trim() === '') return undefined;
  try {
    const raw: unknown = JSON.parse(json);
    return usual || isObject(raw) ? { raw, bytes: json.length } : { error: 'is not a JSON object' };
  } catch (error) {
    if (open) return { error: cutShort };
    if (json.includes('\0')) return { error: 'is not valid JSON: it holds NUL bytes' };
    return { error: `is not valid JSON${placeOf(error)}` };
  }
}

/** Where JSON.parse gave up; its message itself quotes the line, which may hold an API key. */
function placeOf(error: unknown): string {
  const place = error instanceof Error ? / at position (\d+)/.exec(error.message)?.[1] : undefined;
  return place === undefined ? '' : ` (at character ${Number(place) + 1})`;
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
