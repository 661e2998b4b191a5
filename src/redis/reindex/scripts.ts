import type { RedisClient } from '../connection/client.ts';
import type { ScriptCommand, ScriptFiles } from '../connection/script-loader.ts';

export interface ReindexScripts {
  reindexOpen: ScriptCommand<
    [token: string, leaseMs: number, comparison: string],
    | ['unknown-organization' | 'unchanged' | 'busy' | 'inconsistent']
    | ['opened', current: string, next: string, buckets: number]
  >;
  reindexNames: ScriptCommand<
    [token: string, leaseMs: number, next: string, ...pairs: string[]],
    ['lapsed'] | ['added', collisions: [position: number, holder: string][]]
  >;
  reindexDenied: ScriptCommand<
    [token: string, leaseMs: number, next: string, ...pairs: string[]],
    ['lapsed'] | ['added', count: number]
  >;
  reindexCommit: ScriptCommand<[token: string, next: string, comparison: string], 'lapsed' | 'committed'>;
  reindexClose: ScriptCommand<[token: string], 'lapsed' | 'closed'>;
  reindexDrop: ScriptCommand<[generation: string, buckets: number], 'in-use' | 'more' | 'dropped'>;
}

export type ReindexStore = RedisClient & ReindexScripts;

export const reindexScripts: ScriptFiles<ReindexScripts> = {
  reindexOpen: 'reindex/open',
  reindexNames: 'reindex/names',
  reindexDenied: 'reindex/denied',
  reindexCommit: 'reindex/commit',
  reindexClose: 'reindex/close',
  reindexDrop: 'reindex/drop',
};
