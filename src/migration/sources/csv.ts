import { isUtf8 } from 'node:buffer';
import { pipeline, Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { columnsOf, type CsvColumns } from './csv-columns.ts';
import { fileVersion, fromPosition, maxRowBytes, openBytes, toPosition } from './file.ts';
import type { DataFile } from './file.ts';
import { usualBatchSize, isOf, SourceError } from './source.ts';
import type { Batch, ReadOptions, Row } from './source.ts';

interface RowError {
  readonly line: number;
  readonly error: string;
}

interface CsvRecord {
  readonly cells: readonly string[];
  readonly line: number;
}

/** Reads a CSV file's first line and tells what its columns give, as `columnsOf`. */
export async function readCsvHeader(
  file: DataFile,
  fields: ReadonlyMap<string, string> | undefined,
): Promise<CsvColumns> {
  for await (const { cells } of openRecords(file, () => {}).records) {
    const names = cells.map((cell) => (decode(cell) ?? '').trim());
    return columnsOf(file, names, fields);
  }
  throw new SourceError(`${file.name} is empty: its first line must name the columns`);
}

/** Streams the records of a CSV file as fields; an empty cell is an absent field. Resuming reads past what is done. */
export async function* readCsv(
  file: DataFile,
  columns: CsvColumns,
  options: ReadOptions,
): AsyncGenerator<Batch> {
  const size = options.size ?? usualBatchSize;
  const version = await fileVersion(file);
  const done = fromPosition(options.after, version).line;
  const errors: RowError[] = [];
  const { records, consumed } = openRecords(file, (error) => errors.push(error));
  let rows: Row[] = [];
  let lines: number[] = [];
  let line = done;

  const cut = (): Batch => {
    const numbers = lines;
    const batch = {
      rows,
      where: (index: number) => `${file.name}:${numbers[index] ?? 0}`,
      end: toPosition({ offset: 0, line }, version),
      progress: version.size === 0 ? 1 : Math.min(1, consumed() / version.size),
    };
    rows = [];
    lines = [];
    return batch;
  };
  const add = (row: Row, at: number): void => {
    if (at <= done) return;
    line = at;
    if (row.error === undefined && !isOf(options.organizationId, row.raw)) return;
    rows.push(row);
    lines.push(at);
  };
  // The parser runs ahead of its reader, so every error before a record is known by the time the record arrives.
  const addErrorsBefore = (at: number): void => {
    while (errors[0] !== undefined && errors[0].line < at) {
      add({ error: errors[0].error }, errors[0].line);
      errors.shift();
    }
  };

  let first = true;
  for await (const record of records) {
    if (first) {
      first = false;
      continue;
    }
    addErrorsBefore(record.line);
    add(toRow(record.cells, columns), record.line);
    if (rows.length >= size) yield cut();
  }
  addErrorsBefore(Number.POSITIVE_INFINITY);
  if (line > done) yield cut();
}

function toRow(cells: readonly string[], columns: CsvColumns): Row {
  if (cells.length !== columns.length) {
    return { error: `has ${cells.length} cells where the first line has ${columns.length}` };
  }
  const raw: Record<string, string> = {};
  for (const [index, cell] of cells.entries()) {
    const field = columns[index];
    if (field === undefined || cell === '') continue;
    const text = decode(cell);
    if (text === undefined) return { error: 'is not valid UTF-8' };
    raw[field] = text;
  }
  return { raw };
}

/**
 * The parser's records, as Latin-1: one character is one byte, so that invalid UTF-8 can be told from U+FFFD. What
 * the parser cannot read goes to onError with its line, never with its content.
 */
function openRecords(
  file: DataFile,
  onError: (error: RowError) => void,
): { records: AsyncIterable<CsvRecord>; consumed: () => number } {
  const { chunks, consumed } = openBytes(file, 0);
  const parser = parse({
    encoding: 'latin1',
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
    skip_records_with_error: true,
    max_record_size: maxRowBytes,
    on_skip: (error) => {
      if (error?.code === 'INVALID_OPENING_QUOTE') {
        onError({ line: lineOf(error), error: 'has a quote inside an unquoted cell' });
      } else {
        // Behind such a fault nothing tells where the next row begins: going on would lose rows, or invent some.
        parser.destroy(unreadableFrom(file, error));
      }
      return undefined;
    },
  });
  pipeline(Readable.from(withoutMark(chunks), { objectMode: false }), parser, () => {});
  return { records: readRecords(file, parser), consumed };
}

async function* readRecords(file: DataFile, parser: AsyncIterable<unknown>): AsyncGenerator<CsvRecord> {
  try {
    for await (const { info, record } of parser as AsyncIterable<{
      info: { lines: number };
      record: string[];
    }>) {
      yield { cells: record, line: info.lines };
    }
  } catch (error) {
    throw error instanceof CsvError ? unreadableFrom(file, error) : error;
  }
}

async function* withoutMark(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let first = true;
  for await (const chunk of chunks) {
    yield first && chunk.subarray(0, 3).equals(Buffer.from([0xef, 0xbb, 0xbf])) ? chunk.subarray(3) : chunk;
    first = false;
  }
}

function lineOf(error: unknown): number {
  const { lines } = error as { lines?: unknown };
  return typeof lines === 'number' ? lines : 0;
}

function unreadableFrom(file: DataFile, error: unknown): SourceError {
  const code = error instanceof CsvError ? error.code : '';
  const faults: Readonly<Record<string, string>> = {
    CSV_QUOTE_NOT_CLOSED: 'a quote is opened and never closed',
    CSV_MAX_RECORD_SIZE: 'a row is longer than 1 MiB, perhaps for a quote left open',
    CSV_INVALID_CLOSING_QUOTE: 'there is text behind a closing quote',
  };
  const fault = faults[code] ?? `the file is not valid CSV (${code})`;
  return new SourceError(
    `${file.name}:${lineOf(error)}: ${fault}; mend the quoting, nothing behind it can be read`,
  );
}

// eslint-disable-next-line no-control-regex
const ascii = /^[\0-\x7f]*$/;

function decode(latin1: string): string | undefined {
  if (ascii.test(latin1)) return latin1;
  const bytes = Buffer.from(latin1, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}
