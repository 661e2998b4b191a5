import { parseMapping } from '../../../src/migration/sources/mapping.ts';
import type { Entity } from '../../../src/migration/records/records.ts';
import { openSource } from '../../../src/migration/sources/open.ts';
import type { ReadOptions, Source } from '../../../src/migration/sources/source.ts';

/** One row as a reader of reports sees it. */
export interface Seen {
  at: string;
  record?: unknown;
  reason?: string;
}

/** Works with a database as a source by a mapping, and closes it afterwards. */
export async function withSource<T>(
  url: string,
  mapping: string,
  use: (source: Source) => Promise<T>,
): Promise<T> {
  const source = await openSource(url, parseMapping(mapping, 'mapping.yaml'));
  try {
    return await use(source);
  } finally {
    await source.close();
  }
}

/** Every row of an entity, with the number of rows up to the end of each batch. */
export async function readRows(
  source: Source,
  entity: Entity,
  options?: Partial<ReadOptions>,
): Promise<{ rows: Seen[]; counts: number[]; progress: number[] }> {
  const rows: Seen[] = [];
  const counts: number[] = [];
  const progress: number[] = [];
  for await (const batch of source.read(entity, { size: 500, ...options })) {
    for (const [index, row] of batch.rows.entries()) rows.push({ at: batch.placeOf(index), ...row });
    counts.push(rows.length);
    progress.push(batch.progress);
  }
  return { rows, counts, progress };
}

/** Every row of an entity as a record; a row that is none is its reason. */
export async function readRecords(
  source: Source,
  entity: Entity,
  options?: Partial<ReadOptions>,
): Promise<unknown[]> {
  const { rows } = await readRows(source, entity, options);
  return rows.map(({ record, reason }) => record ?? reason);
}

/** A mapping of one entity, by its query and the columns of its key. */
export function mappingOf(query: string, key = 'userId', entity: Entity = 'profiles'): string {
  return `entities: {${entity}: {query: ${JSON.stringify(query)}, key: [${key}]}}`;
}

/** Every row of the one entity that a mapping names, as `readRecords` gives it. */
export async function recordsBy(
  url: string,
  mapping: string,
  options?: Partial<ReadOptions>,
): Promise<unknown[]> {
  return await withSource(url, mapping, async (source) => {
    const [entity = 'profiles'] = source.entities;
    return await readRecords(source, entity, options);
  });
}

/** The message of the error that the work ends with. */
export async function messageOf(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  }
  return 'no error';
}
