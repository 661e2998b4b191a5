import type { Batch, Position, Row } from './source.ts';

/** Rows per batch unless the caller asks for another number. */
const defaultBatchSize = 500;
/** Bytes per batch, give or take a row: wide rows make neither memory nor a script's time grow. */
const maxBatchBytes = 256 * 1024;

/** Rows on their way into a batch, each with its place in the source. */
export interface BatchBuilder<Place> {
  readonly isFull: boolean;
  add: (row: Row, place: Place) => void;
  /** The batch of what was added since the last one. */
  cut: (rest: { progress: number; end?: Position }) => Batch;
}

/** Builds batches bounded by count and by bytes. */
export function createBatchBuilder<Place>(
  size = defaultBatchSize,
  where: (place: Place) => string,
): BatchBuilder<Place> {
  let rows: Row[] = [];
  let places: Place[] = [];
  let bytes = 0;
  return {
    get isFull() {
      return rows.length >= size || bytes >= maxBatchBytes;
    },
    add: (row, place) => {
      rows.push(row);
      places.push(place);
      bytes += row.error === undefined ? row.bytes : 0;
    },
    cut: (rest) => {
      const own = places;
      const batch: Batch = { rows, where: (index) => where(own[index] as Place), ...rest };
      rows = [];
      places = [];
      bytes = 0;
      return batch;
    },
  };
}

/** Whether a row belongs to the organization that was asked for; any row does when none was. */
export function belongsTo(organizationId: string | undefined, raw: unknown): boolean {
  if (organizationId === undefined) return true;
  const own = (raw as { organizationId?: unknown } | null)?.organizationId;
  return own === organizationId || (typeof own === 'number' && String(own) === organizationId);
}
