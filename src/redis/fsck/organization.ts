import { storeTime } from '../connection/client.ts';
import { settingsFaults } from '../../domain/settings.ts';
import { comparisonForm, nameFault } from '../../domain/usernames.ts';
import { scanPairs } from '../connection/scan.ts';
import {
  apiKeyIdsKey,
  auditKey,
  denylistKey,
  objectsKey,
  settingsKey,
  unreferencedPicturesKey,
} from '../keys.ts';
import { readWriteSnapshot } from '../write-snapshot.ts';
import { checkKeyList } from './api-keys.ts';
import { hasType, quote, removeField, type Check } from './check.ts';
import { checkObjects } from './references.ts';

/** Checks what an organization has in single keys: settings, denylist, list of keys, catalogue, unreferenced files. */
export async function checkOrganization(check: Check): Promise<void> {
  const { base, counts } = check;
  counts.organizations++;
  await checkSettings(check);
  if (await hasType(check, denylistKey(base, check.snapshot.index), 'hash')) await checkDenylist(check);
  if (await hasType(check, apiKeyIdsKey(base), 'hash')) await checkKeyList(check);
  if (await hasType(check, objectsKey(base), 'hash')) await checkObjects(check);
  if (await hasType(check, unreferencedPicturesKey(base), 'zset')) await checkUnreferencedFiles(check);
  await hasType(check, auditKey(base), 'stream');
}

async function checkSettings({ store, base, snapshot, report }: Check): Promise<void> {
  const key = settingsKey(base);
  const stored = await store.hmget(key, 'comparison', 'index', 'building', `n${snapshot.index}`);
  const [comparison, index, building, buckets] = stored;
  const faults = settingsFaults(snapshot.settings);
  if (comparison !== 'exact' && comparison !== 'case-insensitive') {
    faults.push(`the comparison is ${quote(comparison ?? '')}`);
  }
  if (!/^\d+$/.test(index ?? '0') || !/^\d+$/.test(building ?? '0')) {
    faults.push('the generation of the name index is not a number');
  }
  if (!/^[1-9]\d*$/.test(buckets ?? '1')) {
    faults.push('the number of buckets of the name index is not a positive number');
  }
  for (const fault of faults) {
    await report('settings-invalid', `${fault}: correct it with org set, or in ${quote(key)}`);
  }
}

/** A denied name is stored under its form; the value is the name as given, '' where that is the form. */
async function checkDenylist(check: Check): Promise<void> {
  const { store, base, counts, report } = check;
  const { index, settings } = check.snapshot;
  const key = denylistKey(base, index);
  for await (const page of scanPairs(store, key)) {
    counts.deniedNames += page.length;
    for (const [field, value] of page) {
      const name = value === '' ? field : value;
      const form = comparisonForm(name, settings.comparison);
      const fault = nameFault(name);
      if (form === field && fault === undefined) continue;
      // Unless the comparison has been changed meanwhile, and with it the list.
      check.snapshot = await readWriteSnapshot(store, base);
      if (check.snapshot.index !== index) return await checkDenylist(check);
      if (fault !== undefined) {
        const detail = `denied name ${quote(name)} ${fault}, so nobody can have it`;
        await report('denied-name-misfiled', detail, removeField(key, field, value));
        continue;
      }
      const detail = `denied name ${quote(name)} is stored under ${quote(field)}, where no lookup finds it`;
      await report('denied-name-misfiled', detail, {
        generation: index,
        expect: [[value, 'hget', key, field]],
        commands: [
          ['hdel', key, field],
          ['hsetnx', key, form, form === name ? '' : name],
        ],
      });
    }
  }
}

/** How far ahead of the store's clock the time of an unreferenced file may be, in ms. */
const slack = 3_600_000;

async function checkUnreferencedFiles({ store, base, report }: Check): Promise<void> {
  const key = unreferencedPicturesKey(base);
  const now = await storeTime(store);
  for (const file of await store.zrangebyscore(key, now + slack, '+inf', 'LIMIT', 0, 1000)) {
    const detail = `no sweep would remove picture file ${quote(file)}: it is listed as unreferenced since a time in the future`;
    await report('loose-file-undated', detail, {
      expect: [],
      commands: [['zadd', key, 'XX', 'LT', now, file]],
    });
  }
}
