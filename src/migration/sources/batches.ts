import { namesIn, parseRecord, type Parsed } from '../records/parse.ts';
import type { Entity } from '../records/records.ts';
import type { Fields } from '../records/shapes.ts';
import { id } from '../records/values.ts';
import type { Batch, ReadOptions, Row } from './source.ts';

/** Bytes per batch, give or take a row, so that wide rows increase neither memory nor the time of a script. */
const maxBatchBytes = 256 * 1024;

/**
 * A row whose record is longer than this as a line of NDJSON is invalid: memory stays flat, and what is exported can be
 * read back.
 */
export const maxRowBytes = 1024 * 1024;
export const tooLong = 'is longer than 1 MiB';

/** Builds batches bounded by count and by bytes; `describe` puts a row's place in the source into words. */
export function createBatchBuilder<Place>(
  entity: Entity,
  { size, organizationId }: ReadOptions,
  describe: (place: Place) => string,
) {
  let rows: Row[] = [];
  let places: Place[] = [];
  let width = 0;
  return {
    get isFull(): boolean {
      return rows.length >= size || width >= maxBatchBytes;
    },
    /**
     * Reads a row as a record, unless it is one of another organization than the one asked for; `bytes` is its width.
     * With a fault it is not a record.
     */
    add: (raw: Fields, bytes: number, place: Place, fault?: string): void => {
      if (organizationId !== undefined && isOfAnother(organizationId, raw)) return;
      const parsed: Parsed =
        fault === undefined ? withinLimit(parseRecord(entity, raw), bytes) : { ok: false, reason: fault };
      rows.push(parsed.ok ? parsed : { ...parsed, ...namesIn(raw) });
      places.push(place);
      width += bytes;
    },
    /** Adds a row that cannot be read at all. */
    refuse: (reason: string, place: Place): void => {
      rows.push({ ok: false, reason });
      places.push(place);
    },
    /** The batch of the rows added since the last one; `progress` is the share of the entity read by its end, 0 to 1. */
    cut: (progress: number): Batch => {
      const own = places;
      const batch: Batch = { rows, placeOf: (index) => describe(own[index] as Place), progress };
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

/** Only a valid id says so: a row whose id is invalid must not look like one that has vanished. */
function isOfAnother(organizationId: string, raw: Fields): boolean {
  const own = id(raw['organizationId']);
  return typeof own === 'string' && own !== organizationId;
}
