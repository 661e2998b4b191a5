import type { RedisClient } from '../connection/client.ts';
import { layoutKey, localWritesKey, organizationBase, organizationsKey, settingsKey } from '../keys.ts';
import { scanMembers } from '../connection/scan.ts';
import { layoutVersion, readLayout, recordLayout, type Layout } from './layout.ts';

export type UpgradeOutcome =
  | { kind: 'upgraded'; from: number; organizations: number }
  /** The data already has this version's layout. */
  | { kind: 'current' }
  | { kind: 'newer'; layout: Layout }
  /** Aborted by the signal. A later call does the rest; until then no bridge starts. */
  | { kind: 'interrupted' };

interface UpgradeOptions {
  signal: AbortSignal;
  /** Called after each organization with how many are done. */
  onProgress?: (organizations: number) => void;
}

/**
 * The steps from each layout to the next, for one organization. A step may be interrupted at any call and is then
 * repeated, also for organizations for which it was already done.
 */
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
  { signal, onProgress = () => {} }: UpgradeOptions,
): Promise<UpgradeOutcome> {
  const layout = await readLayout(client, prefix);
  if (layout.kind === 'newer') return { kind: 'newer', layout };
  if (layout.kind === 'empty') await recordLayout(client, prefix);
  if (layout.kind === 'empty' || layout.kind === 'current') return { kind: 'current' };
  const from = layout.kind === 'older' ? layout.version : layout.from;
  await client.set(layoutKey(prefix), `${from}->${layoutVersion}`);
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
