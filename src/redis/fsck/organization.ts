import { setTimeout as sleep } from 'node:timers/promises';
import { storeTime } from '../connection/client.ts';
import { settingsFaults } from '../../domain/settings.ts';
import { nameFault, normalizedName } from '../../domain/usernames.ts';
import { scanPairs } from '../connection/scan.ts';
import {
  apiKeyIdsKey,
  denylistKey,
  objectsKey,
  rebuildKey,
  settingsKey,
  unreferencedPicturesKey,
} from '../keys.ts';
import { dropGeneration, listGenerations } from '../reindex/generations.ts';
import { readWriteSnapshot } from '../changes.ts';
import { checkKeyList } from './api-keys.ts';
import { hasType, quote, readNaming, removeField, type Check, type Repair } from './check.ts';
import { checkObjects } from './references.ts';

/**
 * Checks what an organization has in single keys: settings, denylist, list of keys, catalogue, unreferenced files. False
 * if nothing else of it can be examined.
 */
export async function checkOrganization(check: Check): Promise<boolean> {
  const { base, counts } = check;
  counts.organizations++;
  if (!(await checkSettings(check))) return false;
  if (await hasType(check, denylistKey(base, check.snapshot.index), 'hash')) await checkDenylist(check);
  if (await hasType(check, apiKeyIdsKey(base), 'hash')) await checkKeyList(check);
  if (await hasType(check, objectsKey(base), 'hash')) await checkObjects(check);
  if (await hasType(check, unreferencedPicturesKey(base), 'zset')) await checkUnreferencedFiles(check);
  await checkGenerations(check);
  return true;
}

/** False if the settings do not say how names are stored, or which changes are refused. */
async function checkSettings({ store, base, snapshot, report }: Check): Promise<boolean> {
  const key = settingsKey(base);
  for (const fault of settingsFaults(snapshot.settings)) {
    await report('settings-invalid', `${fault}: correct it with profile-bridge admin org set`);
  }
  const { comparison = '', ...rest } = await store.hgetall(key);
  const wrong = Object.entries(rest).filter(
    ([field, value]) =>
      (/^(index|building|epoch|audited)$/.test(field) && !/^(0|[1-9]\d{0,8})$/.test(value)) ||
      (/^n\d+$/.test(field) && !/^[1-9]\d{0,8}$/.test(value)),
  );
  if (comparison !== 'exact' && comparison !== 'case-insensitive') wrong.push(['comparison', comparison]);
  for (const [field, value] of wrong) {
    const detail = `field ${field} of ${quote(key)} is ${quote(value)}, which Profile Bridge never writes`;
    await report('settings-invalid', `${detail}: correct it, then run profile-bridge admin fsck --repair`);
  }
  if (wrong.length > 0) return false;
  const doubt = doubtOfGeneration(rest);
  if (doubt !== undefined) await report('settings-invalid', `${quote(key)} ${doubt}`);
  return doubt === undefined;
}

/**
 * Why settings leave in doubt which generation is in force, with the remedy; undefined if they have it as a rebuild
 * writes it: a generation gets its number of buckets and `building` in one step, and is put in `index` later.
 */
function doubtOfGeneration({ index = '0', building, ...rest }: Record<string, string>): string | undefined {
  const sized = Object.keys(rest).filter((field) => /^n\d+$/.test(field));
  const above = ['index', ...sized].filter(
    (field) => Number(field === 'index' ? index : field.slice(1)) > Number(building ?? 0),
  );
  if (above.length > 0) {
    return `has ${above.join(', ')} above the ${building ?? 0} of field building, up to which generations are numbered: set field index to the generation in force, and building to the highest`;
  }
  if (building === undefined || `n${index}` in rest || sized.length === 0) return undefined;
  return `has ${sized.join(', ')}, but not n${index} of generation ${index}, which would be in force: set field index to the generation in force`;
}

async function checkGenerations({ store, base, report }: Check): Promise<void> {
  const generations = await listGenerations(store, base);
  const { index } = await readWriteSnapshot(store, base);
  const unused = generations.filter((generation) => generation !== index);
  if (unused.length === 0 || (await store.exists(rebuildKey(base))) === 1) return;
  // A rebuild that has just ended is about to remove them.
  await sleep(1000);
  const remaining = new Set(await listGenerations(store, base));
  for (const generation of unused.filter((one) => remaining.has(one))) {
    const detail = `generation ${generation} of the name index is neither in force nor being built`;
    await report('generation-left-over', detail, () => dropGeneration(store, base, generation));
  }
}

/**
 * Checks that the settings know the generation that a key of names or denied names belongs to. It may be the one that
 * was in force before settings were lost, so it is left to the operator.
 */
export async function checkGeneration(
  { store, base, snapshot, report }: Check,
  key: string,
  generation: string,
): Promise<void> {
  if (generation === snapshot.index) return;
  if ((await listGenerations(store, base)).includes(generation)) return;
  const { index } = await readWriteSnapshot(store, base);
  // A rebuild may just have removed it.
  if (generation === index || (await store.exists(key)) === 0) return;
  const keys = `${quote(`${base}n${generation}:*`)} and ${quote(`${base}d${generation}`)}`;
  const detail = `${keys} are of a generation of names and denied names that the settings do not have: if it was in force before settings were lost, set ${generationFields(base, generation)}, then run profile-bridge admin fsck --repair; if not, remove them`;
  await report('settings-invalid', detail);
}

/** What puts a generation in force again whose settings were lost. */
export const generationFields = (base: string, generation: string): string =>
  `index and building of ${quote(settingsKey(base))} to ${generation}, n${generation} to one more than the highest number of its keys, and comparison to how it compares names`;

/** A denied name is stored under its normalized name, with the name as given, or '' if that is the same. */
async function checkDenylist(check: Check): Promise<void> {
  const { store, base, snapshot, counts, report } = check;
  const generation = snapshot.index;
  const { comparison } = snapshot.settings;
  const key = denylistKey(base, generation);
  let entries = 0;
  for await (const page of scanPairs(store, key)) {
    entries += page.length;
    for (const [field, value] of page) {
      const name = value === '' ? field : value;
      const normalized = normalizedName(name, comparison);
      const fault = nameFault(name);
      if (normalized === field && fault === undefined) continue;
      // Which of the two was meant is unknown, and no name may lose its denial.
      const isDenied = nameFault(field) === undefined && normalizedName(field, comparison) === field;
      const spelling = normalized === name ? '' : name;
      const repair: Repair = {
        ...removeField(key, field, value),
        commands: [
          isDenied ? ['hset', key, field, ''] : ['hdel', key, field],
          ...(fault === undefined ? [['hsetnx', key, normalized, spelling]] : []),
        ],
      };
      const what =
        fault === undefined
          ? `is stored under ${quote(field)}, where no lookup finds it`
          : `${fault}, so nobody can have it`;
      const detail = `denied name ${quote(name)} ${what}`;
      if (await report('denied-name-misfiled', detail, { generation, ...repair })) continue;
      // The entry is another by now, or the comparison is, and with it the list.
      Object.assign(check, await readNaming(store, base));
      if (check.snapshot.index !== generation) return await checkDenylist(check);
    }
  }
  counts.deniedNames += entries;
}

/** How far ahead of the store's clock the time of an unreferenced file may be, in ms. */
const slack = 3_600_000;

async function checkUnreferencedFiles({ store, base, report }: Check): Promise<void> {
  const key = unreferencedPicturesKey(base);
  const now = await storeTime(store);
  for (const file of await store.zrangebyscore(key, now + slack, '+inf')) {
    const detail = `no sweep would remove picture file ${quote(file)}: it is listed as unreferenced since a time in the future`;
    await report('loose-file-undated', detail, {
      expect: [],
      commands: [['zadd', key, 'XX', 'LT', now, file]],
    });
  }
}
