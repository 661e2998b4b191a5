import { isUtf8 } from 'node:buffer';
import { pipeline, Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { fieldNames, requiredFields } from '../../records/parse.ts';
import { belongsTo, createBatchBuilder } from '../batches.ts';
import { columnsOf, type Columns } from '../columns.ts';
import { SourceError } from '../source.ts';
import type { Batch, ReadOptions, Row } from '../source.ts';
import { maxRowBytes, openBytes } from './file.ts';
import type { DataFile, FileVersion } from './file.ts';

interface RowError {
  readonly line: number;
  readonly error: string;
}

interface CsvRecord {
  readonly cells: readonly string[];
  readonly bytes: number;
  readonly line: number;
}

/** What a CSV file's first line says. */
export interface CsvHeader {
  readonly delimiter: string;
  readonly columns: Columns;
}

/** Reads a CSV file's first line: what separates its cells, and what its columns give, as `columnsOf`. */
export async function readCsvHeader(
  file: DataFile,
  version: FileVersion,
  fields: ReadonlyMap<string, string> | undefined,
): Promise<CsvHeader> {
  const delimiter = await findDelimiter(file, version);
  for await (const { cells } of openRecords(file, version, delimiter, () => {}).records) {
    const names = cells.map((cell) => (decode(cell) ?? '').trim());
    const { entity, name } = file;
    // A first line without a single field name is data, perhaps with an API key in it: it must not be quoted.
    if (fields === undefined && !names.some((column) => fieldNames(entity).includes(column))) {
      const example = requiredFields(entity).map(([field]) => field);
      throw new SourceError(`${name}: the first line must name the columns, such as ${example.join(',')}`);
    }
    return { delimiter, columns: columnsOf({ entity, names, what: 'the first line', where: name }, fields) };
  }
  throw new SourceError(`${file.name} is empty: its first line must name the columns`);
}

/** Comma, semicolon or tab: whichever the first line has most of outside quotes. */
async function findDelimiter(file: DataFile, version: FileVersion): Promise<string> {
  for await (const chunk of openBytes(file, version).chunks) {
    const [line = ''] = chunk
      .toString('latin1')
      .replaceAll(/"[^"]*"/g, '')
      .split(/[\r\n]/, 1);
    const count = (delimiter: string): number => line.split(delimiter).length;
    return [',', ';', '\t'].reduce((best, next) => (count(next) > count(best) ? next : best));
  }
  return ',';
}

/** Streams the records of a CSV file as fields; an empty cell is an absent field. */
export async function* readCsv(
  file: DataFile,
  { delimiter, columns }: CsvHeader,
  version: FileVersion,
  options: ReadOptions,
): AsyncGenerator<Batch> {
  const errors: RowError[] = [];
  const { records, progress } = openRecords(file, version, delimiter, (error) => errors.push(error));
  const batch = createBatchBuilder<number>(options.size, (line) => `${file.name}:${line}`);
  // The parser runs ahead of its reader, so every error before a record is known by the time the record arrives.
  const addErrorsBefore = (at: number): void => {
    while (errors[0] !== undefined && errors[0].line < at) {
      batch.add(errors[0], 0, errors[0].line);
      errors.shift();
    }
  };

  let isHeader = true;
  for await (const record of records) {
    if (isHeader) {
      isHeader = false;
      continue;
    }
    addErrorsBefore(record.line);
    const row = toRow(record.cells, columns);
    if (row.error !== undefined || belongsTo(options.organizationId, row.raw))
      batch.add(row, record.bytes, record.line);
    if (batch.isFull) yield batch.cut(progress());
  }
  addErrorsBefore(Number.POSITIVE_INFINITY);
  yield batch.cut(1);
}

function toRow(cells: readonly string[], columns: Columns): Row {
  if (cells.length !== columns.length) {
    return { error: `has ${cells.length} cells where the first line has ${columns.length}` };
  }
  const raw: Record<string, string> = {};
  for (const [index, cell] of cells.entries()) {
    const field = columns[index];
    if (field === undefined || cell === '') continue;
    const text = decode(cell);
    if (text === undefined) return { error: 'is not valid UTF-8' };
    if (text === '\\N')
      return { error: `has \\N, a database's mark for NULL, as ${field}: leave such a cell empty` };
    raw[field] = text;
  }
  return { raw };
}

/** The file's records, of the bytes as Latin-1: the parser would silently replace what is not valid UTF-8. */
function openRecords(
  file: DataFile,
  version: FileVersion,
  delimiter: string,
  onError: (error: RowError) => void,
): { records: AsyncIterable<CsvRecord>; progress: () => number } {
  const { chunks, progress } = openBytes(file, version);
  const parser = parse({
    delimiter,
    // Any of them ends a record, however they are mixed.
    record_delimiter: ['\r\n', '\n', '\r'],
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
        // After such a fault it is unknown where the next row begins: going on would lose rows, or invent some.
        parser.destroy(unreadableFrom(file, error));
      }
      return undefined;
    },
  });
  pipeline(Readable.from(withoutMark(chunks), { objectMode: false }), parser, () => {});
  return { records: readRecords(file, parser), progress };
}

async function* readRecords(file: DataFile, parser: AsyncIterable<unknown>): AsyncGenerator<CsvRecord> {
  try {
    for await (const { info, record } of parser as AsyncIterable<{
      info: { lines: number };
      record: string[];
    }>) {
      const bytes = record.reduce((sum, cell) => sum + cell.length, 0);
      yield { cells: record, bytes, line: info.lines };
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
    CSV_INVALID_CLOSING_QUOTE: 'there is text after a closing quote',
  };
  const fault = faults[code] ?? `the file is not valid CSV (${code})`;
  return new SourceError(
    `${file.name}:${lineOf(error)}: ${fault}; correct the quoting, nothing after it can be read`,
  );
}

// eslint-disable-next-line no-control-regex
const ascii = /^[\0-\x7f]*$/;

function decode(latin1: string): string | undefined {
  if (ascii.test(latin1)) return latin1;
  const bytes = Buffer.from(latin1, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}
