import { namesIn, parseRecord, type RecordNames } from '../records/parse.ts';
import type { Entity, RecordOf } from '../records/records.ts';
import type { Batch, Source } from './source.ts';

/** What to do with a record that has a problem. */
export type OnConflict = 'abort' | 'skip' | 'drop-username';

/** What is read from the source, and how. */
export interface Scope {
  readonly source: Source;
  /** In the order they are read and written. */
  readonly entities: readonly Entity[];
  readonly organizationId?: string | undefined;
  readonly size?: number | undefined;
  /** Profiles that are known not to have changed since then may be left out (epoch ms). */
  readonly since?: number | undefined;
  readonly onConflict: OnConflict;
}

/** A record of the source with its place. A class, since there are many: none needs its own closure. */
export class Item<E extends Entity = Entity> {
  /** Rows of the entity before it, readable or not. */
  readonly seq: number;
  readonly record: RecordOf[E];
  readonly warnings: readonly string[] | undefined;
  readonly batch: Batch;
  /** Rows of the batch before it. */
  readonly index: number;

  constructor(
    seq: number,
    record: RecordOf[E],
    batch: Batch,
    index: number,
    warnings: readonly string[] | undefined,
  ) {
    this.seq = seq;
    this.record = record;
    this.warnings = warnings;
    this.batch = batch;
    this.index = index;
  }

  /** For people: its place in the source, which no other record of the entity has. */
  where(): string {
    return placeIn(this.batch, this.index);
  }
}

function placeIn({ places, describe }: Batch, index: number): string {
  return describe(places[index]);
}

/** A row that is not a record, with its organization and user or name if they can be read. */
interface InvalidRow extends RecordNames {
  readonly where: string;
  readonly reason: string;
}

export interface Chunk<E extends Entity = Entity> {
  readonly items: readonly Item<E>[];
  readonly invalid: readonly InvalidRow[];
  /** Rows in it. */
  readonly read: number;
  /** The share of the entity that is read by its end, from 0 to 1. */
  readonly progress: number;
}

/** Streams the rows of an entity of the scope as records, some at a time. */
export async function* chunksOf<E extends Entity>(
  { source, organizationId, size, since }: Scope,
  entity: E,
): AsyncGenerator<Chunk<E>> {
  let before = 0;
  const options = { organizationId, size, ...(entity === 'profiles' && { since }) };
  for await (const batch of source.read(entity, options)) {
    const items: Item<E>[] = [];
    const invalid: InvalidRow[] = [];
    let index = -1;
    for (const row of batch.rows) {
      index += 1;
      if (row.error !== undefined) {
        invalid.push({ where: placeIn(batch, index), reason: row.error });
        continue;
      }
      const parsed = parseRecord(entity, row.raw);
      if (parsed.ok) items.push(new Item(before + index, parsed.record, batch, index, parsed.warnings));
      else invalid.push({ where: placeIn(batch, index), reason: parsed.reason, ...namesIn(row.raw) });
    }
    before += batch.rows.length;
    yield { items, invalid, read: batch.rows.length, progress: batch.progress };
  }
}
