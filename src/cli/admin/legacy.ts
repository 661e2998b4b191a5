import { authorityOf } from '../../cutover/modes.ts';
import { readCutover } from '../../cutover/switch/registry.ts';
import type { AdminContext } from './context.ts';

/** Warns, unless the mode is native, that the legacy service does not learn of what a command did. */
export async function warnOfLegacy({ open, note }: AdminContext, remedy: string): Promise<void> {
  const { store, keyPrefix } = await open();
  const { mode } = await readCutover(store, keyPrefix);
  if (mode === 'native') return;
  const when =
    authorityOf(mode) === 'legacy' ? `answers in ${mode}` : 'answers again if the mode goes back to mirror';
  note(`warning: the legacy service, which ${when}, does not learn of this: ${remedy}`);
}
