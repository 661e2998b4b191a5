import { wrongTypeOf, type RedisClient } from './connection/client.ts';
import { compareAndSwap } from './compare-and-swap.ts';
import { scanMembers } from './connection/scan.ts';
import { layoutKey, localWritesKey, organizationBase, organizationsKey, settingsKey } from './keys.ts';

/** The version of what README.md describes; raise it as described there. */
export const layoutVersion = 2;

export type Layout =
  /** Nothing was ever stored under the prefix. */
  | { kind: 'empty' }
  | { kind: 'current' }
  /** 1 is what was written before the layout had a version. */
  | { kind: 'older'; version: number }
  | { kind: 'newer'; version: number }
  /** What is recorded is not a layout as this version writes it. */
  | { kind: 'unknown'; recorded: string }
  /** An upgrade was begun and has not finished. */
  | { kind: 'upgrading'; from: number };

export async function readLayout(client: RedisClient, prefix: string): Promise<Layout> {
  const organizations = await orNamed(organizationsKey(prefix), client.scard(organizationsKey(prefix)));
  // Read last, since it is recorded before the first organization.
  const text = await readRecorded(client, prefix);
  if (text === null) return organizations === 0 ? { kind: 'empty' } : { kind: 'older', version: 1 };
  const [, from, to] = /^(\d+)(?:->(\d+))?$/.exec(text) ?? [];
  if (from === undefined) return { kind: 'unknown', recorded: text };
  const version = Number(to ?? from);
  if (version > layoutVersion) return { kind: 'newer', version };
  if (to !== undefined) return { kind: 'upgrading', from: Number(from) };
  return version === layoutVersion ? { kind: 'current' } : { kind: 'older', version };
}

async function readRecorded(client: RedisClient, prefix: string): Promise<string | null> {
  return await orNamed(layoutKey(prefix), client.get(layoutKey(prefix)));
}

/** Names a key of the wrong type, without which not even fsck can start. */
async function orNamed<Reply>(key: string, reply: Promise<Reply>): Promise<Reply> {
  return await reply.catch((error: unknown) => {
    if (wrongTypeOf(error) === undefined) throw error;
    throw new Error(
      `remove the key ${key}, which has the wrong type, then run profile-bridge admin upgrade and fsck --repair`,
    );
  });
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
      return `the stored data has layout ${layout.version}, this version of Profile Bridge needs ${layoutVersion}: stop every instance, run profile-bridge admin upgrade, then start this version`;
    case 'upgrading':
      return `the stored data is being upgraded from layout ${layout.from} to ${layoutVersion}: wait until profile-bridge admin upgrade has ended, or run it again if it was interrupted`;
    case 'newer':
      return `the stored data has layout ${layout.version}, which is newer than this version of Profile Bridge (${layoutVersion}): start the newer version`;
    case 'unknown':
      return `the stored data has layout ${JSON.stringify(layout.recorded)}, which this version of Profile Bridge does not know: start the version that wrote the data`;
  }
}

export type UpgradeOutcome =
  | { kind: 'upgraded'; from: number; organizations: number }
  /** The data already has this version's layout. */
  | { kind: 'current' }
  /** Nothing was changed. */
  | Extract<Layout, { kind: 'newer' | 'unknown' }>
  /** Aborted by the signal. A later call does the rest; until then no bridge starts. */
  | { kind: 'interrupted' };

interface UpgradeOptions {
  signal: AbortSignal;
  /** Called after each organization with how many are done. */
  onProgress?: (organizations: number) => void;
}

/** The steps from each layout to the next, for one organization. Each may be interrupted at any call and repeated. */
const steps: Record<number, (client: RedisClient, base: string) => Promise<void>> = {
  1: async (client, base) => {
    // The record of local writes had another name, and a rebuild of the name index was marked in the settings.
    const before = `${base}here`;
    await client.sunionstore(localWritesKey(base), localWritesKey(base), before);
    await client.unlink(before);
    await client.hdel(settingsKey(base), 'frozen');
  },
};

/** Converts the stored data to this version's layout. No bridge and no other tool may run meanwhile. */
export async function upgradeLayout(
  client: RedisClient,
  prefix: string,
  options: UpgradeOptions,
): Promise<UpgradeOutcome> {
  const { signal, onProgress = () => {} } = options;
  const recorded = (await readRecorded(client, prefix)) ?? '';
  const layout = await readLayout(client, prefix);
  if (layout.kind === 'newer' || layout.kind === 'unknown') return layout;
  if (layout.kind === 'empty') await recordLayout(client, prefix);
  if (layout.kind === 'empty' || layout.kind === 'current') return { kind: 'current' };
  const from = layout.kind === 'older' ? layout.version : layout.from;
  const underWay = `${from}->${layoutVersion}`;
  // Otherwise another upgrade has ended meanwhile, and instances may have started.
  if ((await compareAndSwap(client, layoutKey(prefix), recorded, underWay, 0)) !== recorded) {
    return await upgradeLayout(client, prefix, options);
  }
  const done = new Set<string>();
  for await (const ids of scanMembers(client, organizationsKey(prefix))) {
    for (const id of ids) {
      if (signal.aborted) return { kind: 'interrupted' };
      for (let version = from; version < layoutVersion; version++) {
        await steps[version]?.(client, organizationBase(prefix, id));
      }
      onProgress(done.add(id).size);
    }
  }
  await client.set(layoutKey(prefix), String(layoutVersion));
  return { kind: 'upgraded', from, organizations: done.size };
}
