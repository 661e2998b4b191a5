import type { RedisClient } from '../../redis/connection/client.ts';
import { loadScripts, type ScriptCommand, type ScriptFiles } from '../../redis/connection/script-loader.ts';

/** An entry of the queue: its id, who has begun to send it or '', and its fields (lua/lib/queue.lua). */
export type EntryReply = [id: string, sender: string, fields: string[]];

interface ReplayScripts {
  replayBacklog: ScriptCommand<[], [entries: number, setAside: number, oldest: string]>;
  replayRead: ScriptCommand<[from: string, count: number], EntryReply[]>;
  replayMark: ScriptCommand<[id: string, sender: string], number>;
  replayComplete: ScriptCommand<[pictureUrl: string, ...ids: string[]], number>;
  replaySetAside: ScriptCommand<[id: string, status: number, reason: string], number>;
  replayRetry: ScriptCommand<[id: string], number>;
  replayDiscard: ScriptCommand<[count: number], ('put' | 'ban' | 'remove' | 'overwrite')[]>;
  replayForgetKeys: ScriptCommand<[], number>;
}

const files: ScriptFiles<ReplayScripts> = {
  replayBacklog: 'cutover/replay/backlog',
  replayRead: 'cutover/replay/read',
  replayMark: 'cutover/replay/mark',
  replayComplete: 'cutover/replay/complete',
  replaySetAside: 'cutover/replay/set_aside',
  replayRetry: 'cutover/replay/retry',
  replayDiscard: 'cutover/replay/discard',
  replayForgetKeys: 'cutover/replay/forget_keys',
};

/** A client that knows the scripts of the queue. */
type ReplayStore = RedisClient & ReplayScripts;

/** Teaches a client these scripts; doing so again changes nothing. */
export function defineReplayScripts(client: RedisClient): ReplayStore {
  return loadScripts<RedisClient, ReplayScripts>(client, files);
}

interface LeaseScripts {
  replayerRenew: ScriptCommand<[instance: string, leaseMs: number], number>;
  replayerRelease: ScriptCommand<[instance: string], number>;
}

/** Teaches a client the scripts of the replayer's lease. */
export function defineLeaseScripts(client: RedisClient): RedisClient & LeaseScripts {
  return loadScripts<RedisClient, LeaseScripts>(client, {
    replayerRenew: 'cutover/replay/renew_lease',
    replayerRelease: 'cutover/replay/release_lease',
  });
}
