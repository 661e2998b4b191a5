import type { Batch, SourceRow } from './source.ts';

/** Rows per batch unless the caller asks for another number. */
const defaultBatchSize = 500;
/** Bytes per batch, give or take a row, so that wide rows increase neither memory nor the time of a script. */
const maxBatchBytes = 256 * 1024;

/** Rows on their way into a batch. */
export interface BatchBuilder<Place> {
  readonly isFull: boolean;
  /** `bytes` is the approximate width of the row. */
  add: (row: SourceRow, bytes: number, place: Place) => void;
  /** The batch of the rows added since the last one; `progress` is the share of the entity read by its end, from 0 to 1. */
  cut: (progress: number) => Batch;
}

/** Builds batches bounded by count and by bytes; `describe` puts a row's place in the source into words. */
export function createBatchBuilder<Place>(
  size = defaultBatchSize,
  describe: (place: Place) => string,
): BatchBuilder<Place> {
  let rows: SourceRow[] = [];
  let places: Place[] = [];
  let width = 0;
  return {
    get isFull() {
      return rows.length >= size || width >= maxBatchBytes;
    },
    add: (row, bytes, place) => {
      rows.push(row);
      places.push(place);
      width += bytes;
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

/** Whether a row belongs to the requested organization; if none was requested, every row does. */
export function belongsTo(organizationId: string | undefined, raw: unknown): boolean {
  if (organizationId === undefined) return true;
  const own = (raw as { organizationId?: unknown } | null)?.organizationId;
  return own === organizationId || (typeof own === 'number' && String(own) === organizationId);
}
