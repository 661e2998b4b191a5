import type { RedisClient } from '../connection/client.ts';
import { layoutKey, organizationsKey } from '../keys.ts';

/**
 * The version of what README.md describes, beside this folder. Raise it if a bridge of the previous version would
 * misread or damage what this one writes, and add the step to upgrade.ts.
 */
export const layoutVersion = 2;

export type Layout =
  /** Nothing was ever stored under the prefix. */
  | { kind: 'empty' }
  | { kind: 'current' }
  /** 1 is what was written before the layout had a version. */
  | { kind: 'older'; version: number }
  | { kind: 'newer'; version: number }
  /** An upgrade was begun and has not finished. */
  | { kind: 'upgrading'; from: number };

/** Which layout the stored data has. */
export async function readLayout(client: RedisClient, prefix: string): Promise<Layout> {
  const [text, organizations] = await Promise.all([
    client.get(layoutKey(prefix)),
    client.scard(organizationsKey(prefix)),
  ]);
  if (text === null) return organizations === 0 ? { kind: 'empty' } : { kind: 'older', version: 1 };
  const [, from, to] = /^(\d+)(?:->(\d+))?$/.exec(text) ?? [];
  const version = Number(to ?? from ?? Number.NaN);
  // Also if this version cannot read the text.
  if (!(version <= layoutVersion)) return { kind: 'newer', version };
  if (to !== undefined) return { kind: 'upgrading', from: Number(from) };
  return version === layoutVersion ? { kind: 'current' } : { kind: 'older', version };
}

/** Records this version's layout for everything stored from now on, unless a layout is already recorded. */
export async function recordLayout(client: RedisClient, prefix: string): Promise<void> {
  await client.set(layoutKey(prefix), String(layoutVersion), 'NX');
}

/** Why this version must not use the data, as one line with the remedy; undefined if it may. */
export function layoutFault(layout: Layout): string | undefined {
  switch (layout.kind) {
    case 'empty':
    case 'current':
      return undefined;
    case 'older':
      return `the stored data has layout ${layout.version}, this version of Profile Bridge needs ${layoutVersion}: stop every instance, run admin upgrade, then start this version`;
    case 'upgrading':
      return `the stored data is being upgraded from layout ${layout.from} to ${layoutVersion}: wait until admin upgrade has ended, or run it again if it was interrupted`;
    case 'newer':
      return `the stored data has layout ${layout.version}, which is newer than this version of Profile Bridge (${layoutVersion}): start the newer version`;
  }
}
