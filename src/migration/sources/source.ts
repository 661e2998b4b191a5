import { untilAborted } from '../../lib/collections/until-aborted.ts';
import type { Parsed, RecordNames } from '../records/parse.ts';
import { entityNames, type Entity } from '../records/records.ts';

/** An error that an operator can correct: the message is one line with the remedy, without passwords and API keys. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}

/** The source cannot be reached, or no longer can be; unlike a mistake in the command, this may pass. */
export class SourceUnavailableError extends SourceError {}

/** One row of the source: a record, or the reason why it is not one. */
export type Row<E extends Entity = Entity> = Parsed<E> & RecordNames;

export interface Batch<E extends Entity = Entity> {
  readonly rows: readonly Row<E>[];
  /** For people: a row's place in the source, such as `profiles.ndjson:17`. Unique for each row. */
  placeOf: (index: number) => string;
  /** The share of the entity that has been read by the end of this batch, from 0 to 1; 0 if unknown. */
  readonly progress: number;
  /** What is unusual about the entity as a whole; in its last batch. */
  readonly warnings?: readonly string[] | undefined;
}

export interface ReadOptions {
  /** Only rows of this organization, and those without a valid organizationId, since they may belong to it. */
  readonly organizationId?: string | undefined;
  /** The most rows of a batch. It may hold fewer, even none: at the end, or where rows are wide or were left out. */
  readonly size: number;
  /** Epoch milliseconds: rows known to have last changed before then may be left out if that saves reading them. */
  readonly since?: number | undefined;
  /**
   * Whether a record that was read may have the identity of an earlier one; asked at the end. If it is given, a source
   * need not remember its keys where equal keys imply equal identities.
   */
  readonly mayRepeat?: (() => boolean) | undefined;
  /** Ends the reading early, also while the source takes its time. */
  readonly signal?: AbortSignal | undefined;
}

/** Legacy data. All entities of one source are read from one state of it; the caller that opens it closes it. */
export interface Source {
  /** What is read, without passwords. */
  readonly name: string;
  /** The entities of the source, in the order of entityNames. */
  readonly entities: readonly Entity[];
  /** File names in the folder that name no entity and are not read. */
  readonly ignored: readonly string[];
  /**
   * Epoch milliseconds: every change made before then is in what is read. A later change may still be missing, in a
   * transaction that was open when reading began. Infinity for files; 0 if a database does not say, or may lag.
   */
  readonly settledUntil: number;
  /** Whether what is read may be older than the moment at which it was opened, as a replica or a materialized view. */
  readonly mayLag?: boolean;
  /** Whether it is read whole whatever `since` says, as files are. */
  readonly isReadWhole: boolean;
  /** The same as long as nothing in it has changed; absent if that cannot be known. */
  readonly version?: string | undefined;
  /**
   * Streams one of the entities, one reading at a time; throws a SourceError if a second reading finds a different
   * state. Ending a reading early may close the source.
   */
  read: <E extends Entity>(entity: E, options: ReadOptions) => AsyncIterable<Batch<E>>;
  close: () => Promise<void>;
}

/** Streams the rows of one entity. */
export type ReadRows = (options: ReadOptions) => AsyncIterable<Batch>;

/** A source of these entities. */
export function createSource(
  readers: ReadonlyMap<Entity, ReadRows>,
  rest: Omit<Source, 'entities' | 'read'>,
): Source {
  return {
    ...rest,
    entities: entityNames.filter((entity) => readers.has(entity)),
    read: <E extends Entity>(entity: E, options: ReadOptions) => {
      const readRows = readers.get(entity);
      if (readRows === undefined) throw new RangeError(`${rest.name} has no ${entity}`);
      return untilAborted(readRows(options) as AsyncIterable<Batch<E>>, options.signal);
    },
  };
}
