import { readCutover, removeEnded, type CutoverStore } from '../switch/registry.ts';
import type { Evidence } from './readiness.ts';

/** Reads what verdicts are made of; registrations of processes that have certainly ended are removed first. */
export async function gatherEvidence(store: CutoverStore, prefix: string): Promise<Evidence> {
  const { instances } = await readCutover(store, prefix);
  await removeEnded(store, prefix, instances);
  return {
    state: await readCutover(store, prefix),
    comparisons: { compared: 0, different: 0, differingUsers: 0, unmappedKeys: 0, refusedKeys: 0 },
  };
}
