import type { RedisClient } from '../connection/client.ts';
import type { ScriptCommand, ScriptFiles } from '../script-loader.ts';

export interface ReindexScripts {
  reindexOpen: ScriptCommand<
    [token: string, leaseMs: number, comparison: string],
    ['unknown-organization'] | ['unchanged'] | ['busy'] | ['opened', generation: string, next: string]
  >;
  reindexNames: ScriptCommand<
    (string | number)[],
    ['lapsed'] | ['added', count: number, collisions: [position: number, holder: string][]]
  >;
  reindexDenied: ScriptCommand<(string | number)[], ['lapsed'] | ['added', count: number]>;
  reindexCommit: ScriptCommand<
    [token: string, leaseMs: number, next: string, comparison: string],
    'lapsed' | 'committed'
  >;
  reindexClose: ScriptCommand<[token: string, leaseMs: number], 'lapsed' | 'closed'>;
}

export type ReindexStore = RedisClient & ReindexScripts;

export const reindexScripts: ScriptFiles<ReindexScripts> = {
  reindexOpen: 'reindex/open',
  reindexNames: 'reindex/names',
  reindexDenied: 'reindex/denied',
  reindexCommit: 'reindex/commit',
  reindexClose: 'reindex/close',
};
