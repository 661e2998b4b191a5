import { readFileSync } from 'node:fs';
import type { RedisClient } from '../../redis/connection/connect.ts';
import { defineScript } from '../../redis/define-script.ts';

/** The scripts of this folder; the .lua files say what each takes and returns. */
interface DeprecationCommands {
  replacePolicy: (key: string, read: string, next: string) => Promise<'replaced' | 'changed'>;
  recordUsage: (
    base: string,
    instance: string,
    sequence: number,
    retentionSeconds: number,
    forgetBefore: number,
    agents: number,
    batch: string,
  ) => Promise<'recorded' | 'already'>;
}

export type DeprecationStore = RedisClient & DeprecationCommands;

const files: Record<keyof DeprecationCommands, string> = {
  replacePolicy: 'replace_policy',
  recordUsage: 'record_usage',
};

/** Teaches a client these scripts; doing so again changes nothing. */
export function defineDeprecationScripts(client: RedisClient): DeprecationStore {
  for (const [name, file] of Object.entries(files)) {
    const lua = `#!lua\n${readFileSync(new URL(`../../redis/lua/deprecation/${file}.lua`, import.meta.url), 'utf8')}`;
    if (name === 'replacePolicy') client.defineCommand(name, { numberOfKeys: 1, lua });
    else defineScript(client, name, { lua });
  }
  return client as DeprecationStore;
}
