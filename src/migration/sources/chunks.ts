import { namesIn, parseRecord, type RecordNames } from '../records/parse.ts';
import type { Entity, RecordOf } from '../records/records.ts';
import type { Batch, Position, Source } from './source.ts';

/** A record of the source, with where it stands. A class, for there are many: none needs a closure of its own. */
export class Item<E extends Entity = Entity> {
  /** Rows of the entity before it, readable or not. */
  readonly seq: number;
  readonly record: RecordOf[E];
  readonly warnings: readonly string[] | undefined;
  readonly #batch: Batch;
  readonly #index: number;

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
    this.#batch = batch;
    this.#index = index;
  }

  /** For people: its place in the source, which no other record of the entity has. */
  where(): string {
    return this.#batch.where(this.#index);
  }

  /** About how many bytes its row has. */
  get bytes(): number {
    const row = this.#batch.rows[this.#index];
    return row?.error === undefined ? (row?.bytes ?? 0) : 0;
  }

  /** The same place with another record. */
  with(record: RecordOf[E]): Item<E> {
    return new Item(this.seq, record, this.#batch, this.#index, this.warnings);
  }
}

/** A row that is not a record, with the organization and user or name it is about where they can be read. */
export interface InvalidRow extends RecordNames {
  readonly where: string;
  readonly reason: string;
}

export interface Chunk<E extends Entity = Entity> {
  readonly items: readonly Item<E>[];
  readonly invalid: readonly InvalidRow[];
  /** Rows in it. */
  readonly read: number;
  /** Where reading can go on after it; undefined where it cannot, and has to begin anew. */
  readonly end: Position | undefined;
  /** `seq` of the row after it. */
  readonly endSeq: number;
  readonly progress: number;
}

export interface ChunkOptions {
  organizationId?: string | undefined;
  size?: number | undefined;
  since?: number | undefined;
  /** Where to go on: a chunk's `end`, and its `endSeq`. */
  from?: { position: Position; seq: number } | undefined;
}

/** Streams an entity's rows as records. */
export async function* readChunks<E extends Entity>(
  source: Source,
  entity: E,
  { organizationId, size, since, from }: ChunkOptions,
): AsyncGenerator<Chunk<E>> {
  let seq = from?.seq ?? 0;
  for await (const batch of source.read(entity, { organizationId, size, since, after: from?.position })) {
    const items: Item<E>[] = [];
    const invalid: InvalidRow[] = [];
    for (let index = 0; index < batch.rows.length; index += 1) {
      const row = batch.rows[index];
      if (row === undefined) continue;
      if (row.error !== undefined) {
        invalid.push({ where: batch.where(index), reason: row.error });
        continue;
      }
      const parsed = parseRecord(entity, row.raw);
      if (parsed.ok) items.push(new Item(seq + index, parsed.record, batch, index, parsed.warnings));
      else invalid.push({ where: batch.where(index), reason: parsed.reason, ...namesIn(row.raw) });
    }
    seq += batch.rows.length;
    const { end, progress } = batch;
    yield { items, invalid, read: batch.rows.length, end, endSeq: seq, progress };
  }
}
