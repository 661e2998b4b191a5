import type { RedisClient } from '../../redis/connection/connect.ts';
import { loadScripts, type ScriptCommand, type ScriptFiles } from '../../redis/connection/script-loader.ts';

/** The scripts of this folder; the .lua files say what each takes and returns. */
interface DeprecationScripts {
  replacePolicy: ScriptCommand<[read: string, next: string], 'replaced' | 'changed'>;
  recordUsage: ScriptCommand<
    [
      instance: string,
      sequence: number,
      retentionSeconds: number,
      forgetBefore: number,
      agents: number,
      batch: string,
    ],
    'recorded' | 'already'
  >;
}

export type DeprecationStore = RedisClient & DeprecationScripts;

const files: ScriptFiles<DeprecationScripts> = {
  replacePolicy: 'deprecation/replace_policy',
  recordUsage: 'deprecation/record_usage',
};

/** Teaches a client these scripts; doing so again changes nothing. */
export function defineDeprecationScripts(client: RedisClient): DeprecationStore {
  return loadScripts<RedisClient, DeprecationScripts>(client, files);
}
