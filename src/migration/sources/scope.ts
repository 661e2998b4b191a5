import type { Entity } from '../records/records.ts';
import type { ReadOptions, Source } from './source.ts';

/** What to do with a record that has a problem. */
export type OnConflict = 'abort' | 'skip' | 'drop-username';

/** What is read from the source, and how. */
export interface Scope extends ReadOptions {
  readonly source: Source;
  /** In the order they are read and written. */
  readonly entities: readonly Entity[];
  /** Batches in progress at once. */
  readonly concurrency: number;
  readonly onConflict: OnConflict;
  /** The seed of createSeen, which recognizes repeated records. */
  readonly seed?: number | undefined;
}
