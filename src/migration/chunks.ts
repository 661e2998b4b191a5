import { parseRecord, type Entity, type RecordOf } from './records.ts';
import type { Position, Source } from './sources/source.ts';

/** A record of the source, with where it stands. */
export interface Item<E extends Entity = Entity> {
  /** Rows of the entity before it, readable or not. */
  readonly seq: number;
  readonly record: RecordOf[E];
  readonly where: () => string;
  readonly warnings?: readonly string[] | undefined;
}

export interface Chunk<E extends Entity = Entity> {
  readonly items: readonly Item<E>[];
  readonly invalid: readonly { readonly where: string; readonly reason: string }[];
  /** Rows in it. */
  readonly read: number;
  readonly end: Position;
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
    const invalid: { where: string; reason: string }[] = [];
    for (const [index, row] of batch.rows.entries()) {
      const parsed =
        row.error === undefined ? parseRecord(entity, row.raw) : ({ ok: false, reason: row.error } as const);
      if (parsed.ok) {
        const { record, warnings } = parsed;
        items.push({ seq: seq + index, record, where: () => batch.where(index), warnings });
      } else {
        invalid.push({ where: batch.where(index), reason: parsed.reason });
      }
    }
    seq += batch.rows.length;
    const { end, progress } = batch;
    yield { items, invalid, read: batch.rows.length, end, endSeq: seq, progress };
  }
}
