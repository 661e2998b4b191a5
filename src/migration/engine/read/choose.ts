import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import type { Entity } from '../../records/records.ts';
import { defaultRunName } from '../../runs/runs.ts';
import { openSource } from '../../sources/open.ts';
import type { OnConflict, Scope } from '../../sources/scope.ts';
import { SourceError, SourceUnavailableError, type Source } from '../../sources/source.ts';
import { isDatabaseUrl } from '../../sources/database-urls.ts';
import { UsageError } from '../../errors.ts';

/**
 * The order of reading and writing: an organization before its records, a denied name before it may be found in use,
 * a user before what refers to it, and API keys last, so that nobody gets in before everything is in place.
 */
const order: readonly Entity[] = [
  'organizations',
  'objects',
  'denylist',
  'profiles',
  'collections',
  'api-keys',
];

/** The part of a source that the operator chose. */
export interface SourceChoice {
  source: string;
  mapping?: string | undefined;
  entities?: readonly Entity[] | undefined;
  org?: string | undefined;
  /** Records per call to Redis. */
  batch: number;
  /** Calls to Redis in progress at once. */
  concurrency: number;
  onConflict?: OnConflict | undefined;
  run?: string | undefined;
  /** When the export of files began, ms since 1970; undefined if unknown. */
  asOf?: number | undefined;
}

/** When a source was as it is read. */
export type SnapshotTime =
  /** As the operator says; ms since 1970, by the clock of Redis. */
  | { asOf: number }
  /** A moment before its snapshot was opened, by `performance.now()`. */
  | { openedAt: number };

/** A source as chosen, opened; whoever opens it closes it. */
export type Chosen = Awaited<ReturnType<typeof openChosen>>;

/** Opens what was chosen, unless aborted; the environment may have its password. Mistakes are UsageErrors. */
export async function openChosen(choice: SourceChoice, env: NodeJS.ProcessEnv, signal?: AbortSignal) {
  const openedAt = performance.now();
  const isDatabase = isDatabaseUrl(choice.source);
  if (isDatabase && choice.asOf !== undefined)
    throw new UsageError('--as-of is for files: a database is read as it is now, so leave it out');
  const { source, mappingText } = await open(choice, env, signal);
  const missing = choice.entities?.find((entity) => !source.entities.includes(entity));
  if (missing !== undefined) {
    await source.close();
    throw new UsageError(
      `${source.name} has no ${missing}: leave it out of --entities; the source has ${source.entities.join(', ')}`,
    );
  }
  const wanted = choice.entities ?? source.entities;
  const entities = order.filter((entity) => wanted.includes(entity));
  // The same for every path to it, and for a URL with any password.
  const place = isDatabase ? source.name : resolve(choice.source);
  /** Undefined for files whose age was not given, and for a database that may lag behind another one. */
  let snapshot: SnapshotTime | undefined;
  if (isDatabase && source.mayLag !== true) snapshot = { openedAt };
  else if (choice.asOf !== undefined) snapshot = { asOf: choice.asOf };
  const scope: Scope = {
    source,
    entities,
    organizationId: choice.org,
    size: choice.batch,
    concurrency: choice.concurrency,
    onConflict: choice.onConflict ?? 'abort',
  };
  return {
    source,
    snapshot,
    scope,
    run: choice.run ?? defaultRunName(place),
    /** Identifies a source with its mapping. */
    fingerprint: createHash('sha256')
      .update(JSON.stringify([place, mappingText]))
      .digest('hex'),
    /** Identifies a choice of entities and organization. */
    selection: JSON.stringify([entities, choice.org ?? null]),
  };
}

async function open(
  { source, mapping }: SourceChoice,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal | undefined,
): Promise<{ source: Source; mappingText: string }> {
  try {
    if (mapping === undefined)
      return { source: await openSource(source, undefined, env, signal), mappingText: '' };
    // Loaded only if needed: loading the YAML parser takes longer than reading a small source.
    const { readMapping } = await import('../../sources/mapping.ts');
    const read = await readMapping(mapping);
    return { source: await openSource(source, read.mapping, env, signal), mappingText: read.text };
  } catch (error) {
    const isMistake = error instanceof SourceError && !(error instanceof SourceUnavailableError);
    throw isMistake ? new UsageError(error.message) : error;
  }
}
