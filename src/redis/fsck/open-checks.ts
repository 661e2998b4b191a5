import { setTimeout as sleep } from 'node:timers/promises';
import { getOrInsert } from '../../lib/collections/get-or-insert.ts';
import type { RedisClient } from '../connection/client.ts';
import { cutoverKey, loadingKey, organizationOf, organizationsKey, settingsKey } from '../keys.ts';
import { registerOrganization } from '../organizations.ts';
import {
  createReport,
  noCounts,
  ofRightType,
  quote,
  readNaming,
  type Check,
  type Naming,
  type ReportOptions,
} from './check.ts';
import { checkOrganization, generationFields } from './organization.ts';

/** The checks of organizations, each begun when it is first asked for: its settings and lists are examined then. */
export function createChecks(store: RedisClient, prefix: string, options: ReportOptions) {
  const counts = { ...noCounts };
  const loading: string[] = [];
  const checks = new Map<string, Promise<Check | undefined>>();
  let wait: Promise<unknown> | undefined;
  /** Organizations are registered a moment before their settings are stored. One wait covers all that are by then. */
  const onceStored = (): Promise<unknown> => (wait ??= sleep(1000));

  const begin = async (base: string): Promise<Check | undefined> => {
    const id = organizationOf(prefix, base);
    if (id === undefined) return undefined;
    const report = createReport(store, base, id, options);
    const state = await stateOf(store, base, onceStored);
    if (state === 'hash') return await openCheck({ store, base, counts, report }, prefix, id);
    const restore = restoreSettings(prefix, base);
    if (state === 'loading') loading.push(id);
    else if (state === 'none') {
      const orGivenUp = `or, if a load of it was given up, take it off the set "${organizationsKey(prefix)}"`;
      await report('settings-missing', `there are no settings: ${restore}; ${orGivenUp}`);
    } else {
      await report('wrong-type', `"${settingsKey(base)}" is not a hash: remove it, then ${restore}`);
    }
    return undefined;
  };

  return {
    /** What was checked so far, in all organizations. */
    counts,
    /** Organizations that a migration is loading for the first time. */
    loading,
    /** The check of the organization with this base; undefined if nothing else of it can be examined. */
    of: (base: string): Promise<Check | undefined> => getOrInsert(checks, base, () => begin(base)),
  };
}

/** The type of an organization's settings; `loading` where a migration has yet to store them. */
async function stateOf(
  store: RedisClient,
  base: string,
  onceStored: () => Promise<unknown>,
): Promise<string> {
  for (let look = 1; ; look++) {
    // Asked first: a load stores the settings when it ends.
    const isLoading = (await store.exists(loadingKey(base))) === 1;
    const type = await store.type(settingsKey(base));
    if (type === 'none' && isLoading) return 'loading';
    if (type !== 'none' || look > 1) return type;
    await onceStored();
  }
}

/** To be done in this order: an organization created anew has no denied names, and begins with another index. */
function restoreSettings(prefix: string, base: string): string {
  const keys = `${quote(`${base}n<g>:*`)} or ${quote(`${base}d<g>`)}`;
  return `if there are keys ${keys}, first set ${generationFields(base, '<g>')}, and epoch to that of ${quote(cutoverKey(prefix))}, then run profile-bridge admin org set and fsck --repair`;
}

/** Checks what an organization has in single keys; undefined if nothing else of it can be examined. */
async function openCheck(
  parts: Omit<Check, keyof Naming>,
  prefix: string,
  id: string,
): Promise<Check | undefined> {
  const { store, base, report } = parts;
  if ((await store.sismember(organizationsKey(prefix), id)) === 0) {
    await report('unregistered-organization', 'the organization is not in the registry', async () => {
      await registerOrganization(store, prefix, id);
      return true;
    });
  }
  const check: Check = { ...parts, ...(await readNaming(store, base)) };
  // A switch raises it there first.
  const { epoch } = check.snapshot;
  const announced = (await ofRightType(store.hget(cutoverKey(prefix), 'epoch'))) ?? '0';
  if (epoch > Number(announced)) {
    const detail = `field epoch of ${quote(settingsKey(base))} is ${epoch}, above the ${announced} of ${quote(cutoverKey(prefix))}, so changes are refused: set that one to ${epoch}`;
    await report('settings-invalid', detail);
  }
  return (await checkOrganization(check)) ? check : undefined;
}
