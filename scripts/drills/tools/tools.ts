import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { readCutover } from '../../../src/cutover/switch/registry.ts';
import {
  denylistKey,
  layoutKey,
  localWritesKey,
  namesBucketKey,
  organizationBase,
  profileKey,
  settingsKey,
} from '../../../src/redis/keys.ts';
import { readLayout } from '../../../src/redis/layout.ts';
import { runTool, type Ran } from '../../../test/support/tools/admin.ts';
import { runMigrateTool } from '../run-migrate.ts';
import { after, before, organizationId, writeRecords, writeSource } from './records.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';

/** A command of an operator's that is interrupted at each of its calls. */
export interface Tool {
  name: string;
  /** Makes the organization that the tool is to work on. */
  prepare: (env: Record<string, string>) => Promise<Ran>;
  run: (env: Record<string, string>) => Promise<Ran>;
  /** What another operator does meanwhile; by default the same command. */
  rival?: (env: Record<string, string>) => Promise<Ran>;
  /** What is wrong at first, for the tool to repair: index and profiles need not agree until it has. */
  damage?: (store: RedisClient, prefix: string) => Promise<void>;
  /** What is still wrong once the tool has finished, besides what all tools must keep consistent. */
  check?: (store: RedisClient, prefix: string) => Promise<string[]>;
  /** Users who take another name meanwhile, through the bridge: user, username. */
  renames?: readonly (readonly [string, string])[];
}

/** A user changes a name, and another one takes the one that becomes free. */
const changed = ['u9', 'Renamed'] as const;
const taken = ['newcomer-2', 'Name9'] as const;

/** Makes the tools, and the sources they read. */
export async function createTools(): Promise<Tool[]> {
  const [source, changing] = [await writeSource(before), await writeSource(before)];
  const admin =
    (...args: string[]) =>
    async (env: Record<string, string>): Promise<Ran> =>
      await runTool(env, args);
  const cutover =
    (...args: string[]) =>
    async (env: Record<string, string>): Promise<Ran> =>
      await runTool({ ...env, LEGACY_BASE_URL: 'http://127.0.0.1:9' }, ['cutover', ...args]);
  const migrate =
    (...args: string[]) =>
    async (env: Record<string, string>): Promise<Ran> =>
      await runMigrateTool(env, args);
  const apply = (folder: string) => migrate('apply', '--source', folder, '--run', 'drill', '--batch', '4');
  const orgSet = (option: string, value: string) =>
    admin('org', 'set', organizationId, '--username-comparison', 'case-insensitive', option, value);
  const prepare = apply(source);
  return [
    {
      name: 'org set',
      prepare,
      run: orgSet('--username-max', '40'),
      rival: orgSet('--username-min', '2'),
      renames: [changed, taken],
    },
    { name: 'fsck --repair', prepare, run: admin('fsck', '--repair'), damage, renames: [changed, taken] },
    {
      name: 'migrate apply',
      prepare: async (env) => {
        const ran = await apply(changing)(env);
        await writeRecords(after, changing);
        return ran;
      },
      run: apply(changing),
      renames: [changed],
    },
    {
      name: 'migrate verify',
      prepare,
      run: migrate('verify', '--source', source, '--run', 'drill'),
      renames: [changed],
    },
    { name: 'migrate export', prepare, run: exportAndRead },
    { name: 'upgrade', prepare, run: admin('upgrade'), damage: downgrade, check: checkUpgrade },
    {
      name: 'cutover set',
      prepare: async (env) => {
        const ran = await prepare(env);
        return ran.code === 0 ? await cutover('set', 'shadow', '--force')(env) : ran;
      },
      run: cutover('set', 'mirror'),
      check: checkMode,
    },
  ];
}

/** Damage from outside. */
async function damage(store: RedisClient, prefix: string): Promise<void> {
  const base = baseOf(prefix);
  const generation = (await store.hget(settingsKey(base), 'index')) ?? '0';
  const bucket = namesBucketKey(base, generation, '0');
  await store.hdel(bucket, 'Name0', 'Name1');
  await store.hset(bucket, 'Nobody', 'gone');
  await store.hset(denylistKey(base, generation), 'misﬁled', '', 'Ｗide', 'Wide');
  // As a rebuild that was killed leaves it.
  await store.hset(settingsKey(base), `n${generation}`, '1', 'n7', '1', 'building', '7');
  await store.hset(namesBucketKey(base, '7', '0'), 'Left', 'u1');
  await store.hset(denylistKey(base, '7'), 'Over', '');
  await store.hdel(profileKey(base, 'u2'), 't');
}

const locallyWritten = ['p:u1', 'p:u2'];

/** Makes it the data of an earlier version, with layout 1. */
async function downgrade(store: RedisClient, prefix: string): Promise<void> {
  const base = baseOf(prefix);
  await store.sadd(`${base}here`, locallyWritten);
  await store.hset(settingsKey(base), 'frozen', '1');
  await store.set(layoutKey(prefix), '1');
}

async function checkUpgrade(store: RedisClient, prefix: string): Promise<string[]> {
  const base = baseOf(prefix);
  const found = {
    layout: await readLayout(store, prefix),
    written: (await store.smembers(localWritesKey(base))).sort(),
    before: await store.exists(`${base}here`),
    frozen: await store.hexists(settingsKey(base), 'frozen'),
  };
  const expected = { layout: { kind: 'current' }, written: locallyWritten, before: 0, frozen: 0 };
  return isDeepStrictEqual(found, expected) ? [] : [`the data was not upgraded: ${JSON.stringify(found)}`];
}

async function checkMode(store: RedisClient, prefix: string): Promise<string[]> {
  const { mode, underWay } = await readCutover(store, prefix);
  return mode === 'mirror' && underWay === undefined
    ? []
    : [`the mode is ${mode}, with ${JSON.stringify(underWay)} under way`];
}

/** An export, with a digest of its files as its output: half an export must not look like a complete one. */
async function exportAndRead(env: Record<string, string>): Promise<Ran> {
  const folder = join(await mkdtemp(join(tmpdir(), 'drill-export-')), 'export');
  const ran = await runMigrateTool(env, ['export', '--to', folder]);
  if (ran.code !== 0) return ran;
  const digest = createHash('sha256');
  for (const file of (await readdir(folder)).sort()) {
    const lines = (await readFile(join(folder, file), 'utf8')).split('\n').sort();
    digest.update(`${file}\n${lines.join('\n')}`);
  }
  return { ...ran, out: digest.digest('hex') };
}

export function baseOf(prefix: string): string {
  return organizationBase(prefix, organizationId);
}
