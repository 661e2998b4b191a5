import { setTimeout as sleep } from 'node:timers/promises';
import type { Caller } from '../domain/caller.ts';
import { defaultSettings, type OrganizationSettings } from '../domain/settings.ts';
import { profileKey, settingsKey } from './keys.ts';
import type { RedisClient } from './connection/client.ts';
import { script, type Script } from './connection/script-loader.ts';

// As in api_key/authenticate.lua.
const settingsFields = ['comparison', 'min', 'max', 'pattern', 'template', 'ownership', 'index', 'epoch'];

/** An unset field is false in a script's reply, and null in a command's. */
type Stored = string | false | null;

const findCaller = script<
  [sha256: string],
  { kind: 'unknown' } | { kind: 'known'; caller: Caller; settings: Stored[]; username: Stored; at: string }
>('api_key/authenticate');

/** What a script replies if it has not checked names: names_refused in lua/lib/change.lua. */
export type GenerationRefusal = 'frozen';

/**
 * What a write is checked against before its script runs. The script refuses what was checked against an index
 * generation or a current name that no longer hold, so settings need no cache and names no lock.
 */
export interface WriteSnapshot {
  settings: OrganizationSettings;
  /** The generation of the name index. */
  index: string;
  /**
   * The epoch under which the change is made (src/cutover), by default the organization's: Redis refuses it as
   * `OUTDATED` once a later switch has raised that.
   */
  epoch: number;
  /** The user's current username. */
  username?: string | undefined;
  /** In the mode reverse, what the scripts queue the change with. */
  queued?: Queued | undefined;
}

export type AuthenticationOutcome =
  /** `at`: the time of the store, in ms. */
  { kind: 'unknown' } | { kind: 'known'; caller: Caller; snapshot: WriteSnapshot; at: number };

/**
 * Authenticates, and reads what a write by this caller is checked against. A key that is unknown, revoked, expired, or
 * of another organization is `unknown`.
 */
export async function authenticate(
  store: RedisClient,
  base: string,
  sha256: string,
): Promise<AuthenticationOutcome> {
  const reply = await findCaller(store, base, sha256);
  if (reply.kind === 'unknown') return reply;
  const { kind, caller, settings, username, at } = reply;
  return { kind, caller, snapshot: toWriteSnapshot(settings, username), at: Number(at) };
}

/** What a change is queued with for its replay (lua/lib/change.lua). */
export interface Queued {
  /** In JSON. */
  fields: string;
  /** To be called once it may have been queued. */
  announce: () => void;
}

/** What the arguments of every change begin with (lua/lib/change.lua). */
export type ChangeArguments = [epoch: number | string, index: string];

/** Runs a script of a change. */
export function runChange<Rest extends unknown[], Reply>(
  run: Script<[...ChangeArguments, ...Rest], Reply>,
  store: RedisClient,
  base: string,
  { epoch, index, queued }: WriteSnapshot,
  ...rest: Rest
): Promise<Reply> {
  if (queued === undefined) return run(store, base, epoch, index, ...rest);
  const { fields, announce } = queued;
  return run(store, base, `${epoch} ${fields}`, index, ...rest).finally(announce);
}

/** Reads what a write is to be checked against now. */
export async function readWriteSnapshot(
  store: RedisClient,
  base: string,
  userId?: string,
): Promise<WriteSnapshot> {
  const [settings, username] = await Promise.all([
    store.hmget(settingsKey(base), ...settingsFields),
    userId === undefined ? null : store.hget(profileKey(base, userId), 'u'),
  ]);
  return toWriteSnapshot(settings, username);
}

function toWriteSnapshot(reply: Stored[], username: Stored): WriteSnapshot {
  const [comparison, min, max, pattern, template, ownership, index, epoch] = reply.map(orUndefined);
  return {
    settings: {
      comparison: comparison === 'case-insensitive' ? comparison : defaultSettings.comparison,
      minLength: Number(min ?? defaultSettings.minLength),
      maxLength: Number(max ?? defaultSettings.maxLength),
      pattern,
      objectImageUrlTemplate: template,
      requireOwnership: ownership === '1',
    },
    index: index ?? '0',
    epoch: Number(epoch ?? 0),
    username: orUndefined(username),
  };
}

function orUndefined(value: Stored): string | undefined {
  return value === false || value === null ? undefined : value;
}

/** Whether a script has refused a change because too many wait for their replay; earlier calls have been made. */
export function isBacklogFull(error: unknown): boolean {
  return /\bBACKLOGFULL /.test(String(error));
}

/** Whether Redis has refused a change under an epoch that a later switch has ended. */
export function isOutdated(error: unknown): boolean {
  return /\bOUTDATED /.test(String(error));
}

/** How long a write waits for another operation to decide before it gives up, in ms: less than a client would. */
const retryBudgetMs = 1500;
const pause = 25;

/**
 * Makes a change against what is in force then, again and again while it is undefined: another operation holds the
 * names, or has changed what they were checked against. Undefined once a request may wait no longer, which counts from
 * the first wait.
 */
export async function untilDecided<Decided>(
  store: RedisClient,
  base: string,
  known: WriteSnapshot,
  change: (snapshot: WriteSnapshot) => Promise<Decided | undefined>,
  userId?: string,
): Promise<Decided | undefined> {
  const { epoch, queued } = known;
  let snapshot = known;
  let end: number | undefined;
  for (;;) {
    const decided = await change(snapshot);
    if (decided !== undefined) return decided;
    end ??= performance.now() + retryBudgetMs;
    if (performance.now() >= end) return undefined;
    await sleep(pause);
    snapshot = { ...(await readWriteSnapshot(store, base, userId)), epoch, queued };
  }
}
