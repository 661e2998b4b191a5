import { comparisonForm, nameFault } from '../../domain/usernames.ts';
import { settingsFaults } from '../../domain/settings.ts';
import {
  apiKeyIdsKey,
  auditKey,
  denylistKey,
  unreferencedPicturesKey,
  objectsKey,
  settingsKey,
} from '../keys.ts';
import { scanPairs } from '../connection/scan.ts';
import { readWriteSnapshot } from '../write-snapshot.ts';
import { quote, tell, type Check } from './check.ts';
import { checkKeyList } from './keys.ts';
import { checkObjects } from './references.ts';

/** Proves what an organization has in single keys: settings, denylist, list of keys, catalogue, loose files. */
export async function checkOrganization(check: Check): Promise<void> {
  const { store, base } = check;
  check.counts.organizations++;
  await checkSettings(check);
  const hasType = async (key: string, type: string): Promise<boolean> => {
    const found = await store.type(key);
    if (found === type) return true;
    if (found !== 'none') await tell(check, 'wrong-type', `${quote(key)} is no ${type}: remove it`);
    return false;
  };
  if (await hasType(denylistKey(base, check.snapshot.index), 'hash')) await checkDenylist(check);
  if (await hasType(apiKeyIdsKey(base), 'hash')) await checkKeyList(check);
  if (await hasType(objectsKey(base), 'hash')) await checkObjects(check);
  if (await hasType(unreferencedPicturesKey(base), 'zset')) await checkLooseFiles(check);
  await hasType(auditKey(base), 'stream');
}

async function checkSettings(check: Check): Promise<void> {
  const { store, base } = check;
  const [comparison, index, building, buckets] = await store.hmget(
    settingsKey(base),
    'comparison',
    'index',
    'building',
    `n${check.snapshot.index}`,
  );
  const faults = settingsFaults(check.snapshot.settings);
  if (comparison !== 'exact' && comparison !== 'case-insensitive') {
    faults.push(`the comparison is ${quote(comparison ?? '')}`);
  }
  if (!/^\d+$/.test(index ?? '0') || !/^\d+$/.test(building ?? '0')) {
    faults.push('the generation of the name index is no number');
  }
  if (!/^[1-9]\d*$/.test(buckets ?? '1')) faults.push('the number of buckets of the name index is none');
  for (const fault of faults) {
    await tell(
      check,
      'settings-invalid',
      `${fault}: correct it by org set, or in ${quote(settingsKey(base))}`,
    );
  }
}

/** A denied name stands under its form; the value is how it was given, '' where that is the form. */
async function checkDenylist(check: Check): Promise<void> {
  const { store, base } = check;
  const { index, settings } = check.snapshot;
  for await (const page of scanPairs(store, denylistKey(base, index))) {
    check.counts.deniedNames += page.length;
    for (const [field, value] of page) {
      const name = value === '' ? field : value;
      const form = comparisonForm(name, settings.comparison);
      if (form === field && nameFault(name) === undefined) continue;
      // The comparison was changed meanwhile, and with it the list.
      check.snapshot = await readWriteSnapshot(store, base);
      if (check.snapshot.index !== index) return await checkDenylist(check);
      if (nameFault(name) === undefined) {
        const detail = `denied name ${quote(name)} stands under ${quote(field)}, where nobody finds it`;
        await tell(check, 'denied-name-misfiled', detail, async () =>
          store.fsckRedeny(base, index, field, value, form, form === name ? '' : name),
        );
      } else {
        const detail = `denied name ${quote(name)} ${nameFault(name) ?? ''}, so nobody can have it`;
        await tell(check, 'denied-name-misfiled', detail, async () =>
          store.fsckDrop(base, 'hash', denylistKey(base, index), field, value),
        );
      }
    }
  }
}

/** How far ahead of the store's clock a loose file may be, in ms, before it counts as never to be swept. */
const slack = 3_600_000;

async function checkLooseFiles(check: Check): Promise<void> {
  const { store, base } = check;
  const key = unreferencedPicturesKey(base);
  const [seconds] = await store.time();
  const now = Number(seconds) * 1000;
  for (const file of await store.zrangebyscore(key, now + slack, '+inf', 'LIMIT', 0, 1000)) {
    const detail = `loose picture file ${quote(file)} would never be swept: its time lies in the future`;
    await tell(check, 'loose-file-undated', detail, async () => {
      await store.zadd(key, 'XX', 'LT', now, file);
      return 'mended';
    });
  }
}
