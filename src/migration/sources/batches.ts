import { objectOf, type Cell, type Columns } from '../records/cells.ts';
import { createRowParser, namesIn, parseRecord, type Parsed } from '../records/parse.ts';
import type { Entity } from '../records/records.ts';
import type { Fields } from '../records/shapes.ts';
import type { Batch, ReadOptions, Row } from './source.ts';

/** Rows per batch unless the caller asks for another number. */
const defaultBatchSize = 500;
/** Bytes per batch, give or take a row, so that wide rows increase neither memory nor the time of a script. */
const maxBatchBytes = 256 * 1024;

/**
 * A row whose record is longer than this as a line of NDJSON is invalid: memory stays flat, and what is exported can be
 * read back.
 */
export const maxRowBytes = 1024 * 1024;
export const tooLong = 'is longer than 1 MiB';

/** The form in which a source gives its rows. */
interface RowForm<Raw> {
  parse: (raw: Raw) => Parsed;
  toObject: (raw: Raw) => Fields;
}

/** Rows that are objects. */
export function objectRows(entity: Entity): RowForm<Fields> {
  return { parse: (raw) => parseRecord(entity, raw), toObject: (raw) => raw };
}

/** Rows of cells, one for each column. */
export function cellRows(entity: Entity, columns: Columns): RowForm<readonly Cell[]> {
  return { parse: createRowParser(entity, columns), toObject: (cells) => objectOf(cells, columns) };
}

/** Rows on their way into a batch. */
export interface BatchBuilder<Raw, Place> {
  readonly isFull: boolean;
  /**
   * Reads a row as a record, unless it is one of another organization than the one asked for; `bytes` is its width. With
   * a fault it is no record.
   */
  add: (raw: Raw, bytes: number, place: Place, fault?: string) => void;
  /** Adds a row that cannot be read at all. */
  refuse: (reason: string, place: Place) => void;
  /** The batch of the rows added since the last one; `progress` is the share of the entity read by its end, from 0 to 1. */
  cut: (progress: number) => Batch;
}

/** Builds batches bounded by count and by bytes; `describe` puts a row's place in the source into words. */
export function createBatchBuilder<Raw, Place>(
  { parse, toObject }: RowForm<Raw>,
  { size = defaultBatchSize, organizationId }: ReadOptions,
  describe: (place: Place) => string,
): BatchBuilder<Raw, Place> {
  let rows: Row[] = [];
  let places: Place[] = [];
  let width = 0;
  return {
    get isFull() {
      return rows.length >= size || width >= maxBatchBytes;
    },
    add: (raw, bytes, place, fault) => {
      if (organizationId !== undefined && !belongsTo(organizationId, toObject(raw))) return;
      const parsed =
        fault === undefined ? withinLimit(parse(raw), bytes) : { ok: false as const, reason: fault };
      rows.push(parsed.ok ? parsed : { ...parsed, ...namesIn(toObject(raw)) });
      places.push(place);
      width += bytes;
    },
    refuse: (reason, place) => {
      rows.push({ ok: false, reason });
      places.push(place);
    },
    cut: (progress) => {
      const batch: Batch = { rows, places, describe: describe as Batch['describe'], progress };
      rows = [];
      places = [];
      width = 0;
      return batch;
    },
  };
}

/** The row, if its record is not too long; `width` is that of the row in bytes or characters. */
function withinLimit(row: Parsed, width: number): Parsed {
  // No character takes more than six bytes in JSON.
  if (!row.ok || width < maxRowBytes / 6) return row;
  return Buffer.byteLength(JSON.stringify(row.record)) <= maxRowBytes ? row : { ok: false, reason: tooLong };
}

/** Also where the organization's id is invalid: such a row must not look like one that has vanished. */
function belongsTo(organizationId: string, raw: Fields): boolean {
  const own = raw['organizationId'];
  return own === organizationId || (typeof own === 'number' && String(own) === organizationId);
}
