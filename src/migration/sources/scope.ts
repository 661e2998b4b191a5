import type { Entity } from '../records/records.ts';
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

/** Streams the rows of an entity of the scope. */
export function readScope<E extends Entity>(
  { source, organizationId, size, since }: Scope,
  entity: E,
): AsyncIterable<Batch<E>> {
  return source.read(entity, { organizationId, size, ...(entity === 'profiles' && { since }) });
}
