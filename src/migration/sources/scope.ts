import { readChunks, type Chunk } from './chunks.ts';
import type { Entity } from '../records/records.ts';
import type { Source } from './source.ts';

/** What to do with a record that has a problem. */
export type OnConflict = 'abort' | 'skip' | 'drop-username';

/** A look at the source: what is read, and how. */
export interface Scope {
  readonly source: Source;
  /** In the order they are brought in. */
  readonly entities: readonly Entity[];
  readonly organizationId?: string | undefined;
  readonly size?: number | undefined;
  /** Profiles that surely have not changed since then may be left out (epoch ms). */
  readonly since?: number | undefined;
  readonly onConflict: OnConflict;
}

/** An entity of the scope, chunk by chunk. */
export function chunksOf<E extends Entity>(
  { source, organizationId, size, since }: Scope,
  entity: E,
  from?: { position: string; seq: number },
): AsyncGenerator<Chunk<E>> {
  return readChunks(source, entity, {
    organizationId,
    size,
    ...(entity === 'profiles' && { since }),
    from,
  });
}
