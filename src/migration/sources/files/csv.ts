import { isUtf8 } from 'node:buffer';
import { pipeline, Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { counted } from '../../../lib/numbers.ts';
import { requiredFields } from '../../records/parse.ts';
import { shapes } from '../../records/records.ts';
import { createBatchBuilder, maxRowBytes } from '../batches.ts';
import { columnsOf, createRowReader, widthOf, type Columns } from '../columns.ts';
import { SourceError, type ReadRows } from '../source.ts';
import { openFile, type DataFile } from './file.ts';

/** What the parser gives: the cells of a record, or why there are none, with the line where that ends. */
interface CsvRecord {
  readonly info: { readonly lines: number };
  readonly record: readonly string[];
  readonly error?: string;
}

/**
 * Opens a CSV file, whose first line names the columns: each gives the record field of its name, or the one that
 * `fields` maps to it. An empty cell is an absent field.
 */
export async function openCsv(
  file: DataFile,
  fields: ReadonlyMap<string, string> | undefined,
): Promise<ReadRows> {
  const delimiter = await findDelimiter(file);
  const columns = await readColumns(file, parseFile(file, delimiter).parsed, fields);
  const readRow = createRowReader(columns);
  return async function* (options) {
    const { parsed, progress, lastByte } = parseFile(file, delimiter);
    const batch = createBatchBuilder(file.entity, options, (line: number) => `${file.name}:${line}`);
    // The header was read when the file was opened.
    await parsed.next();
    for await (const { info, record, error } of parsed) {
      const cells = error ?? decodeCells(record, columns);
      if (typeof cells === 'string') batch.refuse(cells, info.lines);
      else batch.add(readRow(cells), widthOf(record), info.lines);
      if (batch.isFull) yield batch.cut(progress());
    }
    yield { ...batch.cut(1), warnings: endsRow.has(lastByte()) ? [] : [`${file.name} ${openEnd}`] };
  };
}

/** Bytes after which a row is whole: a line break, or the quote that closes its last cell. */
const endsRow: ReadonlySet<number | undefined> = new Set(Buffer.from('\r\n"'));
const openEnd = 'does not end with a line break: check that its last cell was not cut short';

async function readColumns(
  { entity, name: where }: DataFile,
  parsed: AsyncIterable<CsvRecord>,
  fields: ReadonlyMap<string, string> | undefined,
): Promise<Columns> {
  for await (const next of parsed) {
    if (next.error !== undefined) throw new SourceError(`${where}: the first line ${next.error}`);
    const names = next.record.map((cell) => decode(cell) ?? '');
    // A first line without a single field name is data, perhaps with an API key in it: it must not be quoted.
    if (fields === undefined && !names.some((name) => shapes[entity].fields.has(name.trim()))) {
      const example = requiredFields(entity).map(([field]) => field);
      throw new SourceError(`${where}: the first line must name the columns, such as ${example.join(',')}`);
    }
    return columnsOf({ entity, names, what: 'the first line', where }, fields);
  }
  throw new SourceError(`${where} is empty: its first line must name the columns`);
}

/** Comma, semicolon or tab: whichever the first line that is not empty has most of outside quotes. */
async function findDelimiter(file: DataFile): Promise<string> {
  for await (const chunk of openFile(file).chunks) {
    const [line = ''] = chunk
      .toString('latin1')
      .replaceAll(/"[^"]*"/g, '')
      .replace(/^[\r\n]+/, '')
      .split(/[\r\n]/, 1);
    const count = (delimiter: string): number => line.split(delimiter).length;
    return [',', ';', '\t'].reduce((best, next) => (count(next) > count(best) ? next : best));
  }
  return ',';
}

/** The cells of columns that are read, or what is wrong with them. */
function decodeCells(cells: readonly string[], columns: Columns): string[] | string {
  if (cells.length !== columns.length)
    return `has ${counted(cells.length, 'cell')} where the first line has ${columns.length}`;
  const texts: string[] = [];
  for (const [index, cell] of cells.entries()) {
    const field = columns[index];
    const text = field === undefined ? '' : decode(cell);
    if (text === undefined) return 'is not valid UTF-8';
    if (text === '\\N') return `has \\N, a database's mark for NULL, as ${field}: leave such a cell empty`;
    texts.push(text);
  }
  return texts;
}

/** Parses the bytes as Latin-1: the parser would silently replace what is not valid UTF-8. */
function parseFile(file: DataFile, delimiter: string) {
  const { chunks, progress } = openFile(file);
  let last: number | undefined;
  const noted = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      last = chunk.at(-1);
      yield chunk;
    }
  };
  let faultyLine = 0;
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
      const fault = error as CsvError;
      // After any other fault it is unknown where the next row begins: continuing would lose or invent rows.
      if (fault.code !== 'INVALID_OPENING_QUOTE') throw fault;
      const lines = lineOf(fault);
      const row: CsvRecord = { info: { lines }, record: [], error: 'has a quote inside an unquoted cell' };
      // A row may have several.
      if (lines !== faultyLine) parser.push(row);
      faultyLine = lines;
      return undefined;
    },
  });
  pipeline(Readable.from(noted(), { objectMode: false }), parser, () => {});
  return { parsed: withSourceErrors(file, parser), progress, lastByte: () => last };
}

const faults: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: 'a quote is opened and never closed',
  CSV_MAX_RECORD_SIZE: 'a row is longer than 1 MiB, perhaps because a quote was left open',
  CSV_INVALID_CLOSING_QUOTE: 'there is text after a closing quote',
};

async function* withSourceErrors(
  { name }: DataFile,
  parser: AsyncIterable<CsvRecord>,
): AsyncGenerator<CsvRecord> {
  try {
    yield* parser;
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const fault = faults[error.code] ?? `the file is not valid CSV (${error.code})`;
    throw new SourceError(
      `${name}:${lineOf(error)}: ${fault}; nothing after this line can be read: correct the quoting`,
    );
  }
}

function lineOf(error: CsvError): number {
  return error['lines'] as number;
}

// eslint-disable-next-line no-control-regex
const ascii = /^[\0-\x7f]*$/;

function decode(latin1: string): string | undefined {
  if (ascii.test(latin1)) return latin1;
  const bytes = Buffer.from(latin1, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}
