import type { Entity } from '../records/records.ts';

/** A mistake an operator can mend: the message is one plain line with the remedy, free of passwords and API keys. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}

/** Where reading can go on later, also in another process: opaque text, without secrets. */
export type Position = string;

/** One row as the source gives it: something for parseRecord, or the reason why it cannot even be read. */
export type Row = { readonly raw: unknown; readonly error?: undefined } | { readonly error: string };

export interface Batch {
  readonly rows: readonly Row[];
  /** For people: where rows[index] stands in the source, such as `profiles.ndjson:17`. */
  where: (index: number) => string;
  /** Reading after this position yields exactly the rows after this batch. */
  readonly end: Position;
  /** The share of the entity that has been read by the end of this batch, from 0 to 1. */
  readonly progress: number;
}

export interface ReadOptions {
  /**
   * Go on after this position. A file that has changed since is read from its beginning: applying a record twice is
   * harmless, missing one is not.
   */
  readonly after?: Position | undefined;
  /** Only rows of this organization, and rows that cannot be read. */
  readonly organizationId?: string | undefined;
  /** Rows per batch at most. A batch holds fewer, even none, at the end, or where rows were left out. */
  readonly size?: number | undefined;
  /** Epoch milliseconds: rows surely last changed before then may be left out, where that saves reading them. */
  readonly since?: number | undefined;
}

/** Legacy data. All entities of one source are read from one state of it; whoever opens it closes it. */
export interface Source {
  /** What is read, without passwords. */
  readonly name: string;
  /** What the source holds, in the order of entityNames. */
  readonly entities: readonly Entity[];
  /** File names in the folder that name no entity and are not read. */
  readonly ignored: readonly string[];
  /** Streams an entity in a stable order; throws SourceError for an entity the source does not hold. */
  read: (entity: Entity, options?: ReadOptions) => AsyncIterable<Batch>;
  close: () => Promise<void>;
}

/** Rows per batch unless the caller asks for another number. */
export const usualBatchSize = 500;

/** Whether a row belongs to the organization that was asked for; any row does when none was. */
export function isOf(organizationId: string | undefined, raw: unknown): boolean {
  if (organizationId === undefined) return true;
  const own = (raw as { organizationId?: unknown } | null)?.organizationId;
  return own === organizationId || (typeof own === 'number' && String(own) === organizationId);
}
