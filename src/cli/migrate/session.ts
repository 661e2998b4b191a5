import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Config } from '../../config.ts';
import { lastChangeOfAuthority, readCutover } from '../../cutover/switch/registry.ts';
import { createReleasers } from '../../lib/releasers.ts';
import { serverUrl } from '../../lib/hosts.ts';
import { storeTime, type RedisClient } from '../../redis/connection/client.ts';
import { isStoreUnavailable } from '../../redis/connection/connect.ts';
import { openStoreForTool } from '../../redis/open.ts';
import {
  openChosen,
  type Chosen,
  type SnapshotTime,
  type SourceChoice,
} from '../../migration/engine/read/choose.ts';
import { formatInstant } from '../../lib/iso8601.ts';
import type { MigrationContext } from '../../migration/context/context.ts';
import { createTallies } from '../../migration/context/outcomes.ts';
import { createWorkspace } from '../../lib/bounded-memory/workspace.ts';
import { MigrationError, UsageError } from '../../migration/errors.ts';
import { asDataFile } from '../../migration/sources/files/folder.ts';
import { manifestName } from '../../migration/sources/files/manifest.ts';
import { openIssues } from '../../migration/context/issues.ts';
import { createOrganizations } from '../../migration/context/organizations.ts';
import { createProgress } from '../../migration/context/progress.ts';
import { dry } from '../../migration/engine/scripts.ts';
import { storeFaultOf } from '../command-line.ts';
import type { Shell } from '../shell.ts';
import { whileRegistered } from './cutover.ts';
import { commandResult, type Report } from './report/command-result.ts';
import type { CommandResult } from '../tool.ts';

/** What a command needs from the process that runs it. */
export interface CliEnvironment extends Shell {
  config: Config;
}

/** What a session is opened with. */
export interface SessionChoice {
  report?: string | undefined;
  trustSource?: boolean | undefined;
  /** When the source was as it is read; undefined if unknown. */
  snapshot?: SnapshotTime | undefined;
  /** Whether the command writes records: then it is registered while it works, and stops in the mode reverse. */
  writes?: boolean | undefined;
}

/** The epoch of a command that writes no records: Redis refuses it nothing. */
const anyEpoch = Number.MAX_SAFE_INTEGER;

/** Opens the chosen source and what a command works with, closes both afterwards, and gives the command's outcome. */
export async function withSource<Own extends Report>(
  command: string,
  environment: CliEnvironment,
  choice: SourceChoice & SessionChoice,
  work: (chosen: Chosen, context: MigrationContext) => Promise<Own>,
): Promise<Own & CommandResult> {
  const startedAt = performance.now();
  const chosen = await openChosen(choice, environment.env, environment.signal);
  try {
    requireSeparateReport(choice, chosen.source.ignored);
    return await withSession(environment, { ...choice, snapshot: chosen.snapshot }, async (context) =>
      commandResult(command, startedAt, await work(chosen, context), context.issues, chosen),
    );
  } finally {
    await chosen.source.close();
  }
}

/** Throws a UsageError if the report would overwrite a file that is read, or would itself be read as a source later. */
function requireSeparateReport(
  { source, mapping, report }: SourceChoice & SessionChoice,
  ignored: readonly string[],
): void {
  if (report === undefined) return;
  const fileAt = (path: string): string => {
    const { dev, ino } = statSync(path);
    return `${dev} ${ino}`;
  };
  const names = existsSync(source) && statSync(source).isDirectory() ? readdirSync(source) : [];
  const within = names.filter((name) => !ignored.includes(name)).map((name) => join(source, name));
  for (const path of existsSync(report) ? [source, mapping ?? '', ...within] : []) {
    if (existsSync(path) && fileAt(path) === fileAt(report))
      throw new UsageError(`${path} is read, and a report would overwrite it: give --report another file`);
  }
  if (asDataFile(report) !== undefined || basename(report) === manifestName) {
    throw new UsageError(
      `${report} has the name of a file of a source or an export, and would be taken for one: give --report another name`,
    );
  }
}

/** Opens what a command works with, and closes it afterwards, also when the work fails. */
export async function withSession<Result>(
  { config, err, signal }: CliEnvironment,
  choice: SessionChoice,
  work: (context: MigrationContext) => Promise<Result>,
): Promise<Result> {
  const releasers = createReleasers();
  const progress = await createProgress(err);
  try {
    const issues = openIssues(choice.report);
    releasers.onClose('report', issues.close);
    const store = await openStoreForTool(config, releasers, { signal });
    const lost = new AbortController();
    // After an outage, Redis may have lost writes that it had confirmed. Only a new start is safe: it resumes from the
    // state of the round in that same Redis.
    store.on('reconnecting', () => lost.abort(storeLost()));
    const workspace = createWorkspace();
    releasers.onClose('temporary files', workspace.close);
    const { keyPrefix: prefix } = config;
    const pictureUrlPrefix = pictureUrlPrefixOf(config);
    const snapshotAt = choice.snapshot && (await onStoreClock(store, choice.snapshot));
    const marksFrom = await firstEpochThatCounts(store, prefix, snapshotAt);
    const workUnder = async (epoch: number, ending: AbortSignal): Promise<Result> =>
      await work({
        store,
        prefix,
        pictureUrlPrefix,
        snapshotAt,
        epoch,
        claim: dry,
        marksFrom,
        trustsSource: choice.trustSource === true,
        workspace,
        organizations: createOrganizations(store, prefix),
        issues,
        tallies: createTallies(),
        progress,
        beforeChange: async () => {},
        signal: ending,
      });
    const ending = AbortSignal.any([signal, lost.signal]);
    const result =
      choice.writes === true
        ? await whileRegistered({ store, prefix, signal: ending }, workUnder)
        : await workUnder(anyEpoch, ending);
    // Here, where an error still fails the command: an incomplete report must not look complete.
    issues.complete();
    if (lost.signal.aborted) throw lost.signal.reason;
    return result;
  } catch (error) {
    throw error instanceof Error && isStoreUnavailable(error) ? storeLost(error) : error;
  } finally {
    progress.stop();
    await releasers.close();
  }
}

/** By the clock of Redis, as adoptions are; that of this machine may differ. Throws a UsageError for one to come. */
export async function onStoreClock(store: RedisClient, snapshot: SnapshotTime): Promise<number> {
  const now = await storeTime(store);
  if ('openedAt' in snapshot) return now - (performance.now() - snapshot.openedAt);
  if (snapshot.asOf <= now) return snapshot.asOf;
  throw new UsageError(
    `--as-of must not be in the future: by the clock of Redis it is ${formatInstant(now)}`,
  );
}

/**
 * Marks of local writes count as long as the authority under which they were made lasts. A source that may be older
 * than the last change of authority, however, cannot contain what was written here before it.
 */
async function firstEpochThatCounts(
  store: RedisClient,
  prefix: string,
  snapshotAt: number | undefined,
): Promise<number> {
  const changed = lastChangeOfAuthority((await readCutover(store, prefix)).history);
  return changed !== undefined && snapshotAt !== undefined && snapshotAt >= changed.since ? changed.epoch : 0;
}

function storeLost(cause?: Error): MigrationError {
  const reason = cause?.message.replaceAll(/\s+/g, ' ') ?? 'connection closed';
  const fault = storeFaultOf(reason, ['the connection to Redis was lost', 'check that Redis is running']);
  return new MigrationError(`${fault.join(': ')}, then run the same command again`, { cause });
}

/** The beginning of the URLs of the bridge's own picture files; the same as in the service if its address is fixed. */
function pictureUrlPrefixOf({ publicBaseUrl, host, port }: Config): string {
  return `${publicBaseUrl ?? serverUrl(host, port)}/media/`;
}
