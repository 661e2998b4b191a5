import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { Command } from 'commander';
import { createReleasers } from '../../../src/lib/releasers.ts';
import { closeRedis, connectRedis } from '../../../src/redis/connection/connect.ts';
import { print, runTool } from '../../program.ts';
import { startRedis } from '../../../test/support/redis.ts';
import { avatar, baseOf, playerKeyOf, seedOrganization, userId } from '../load/seed.ts';
import { encodeReference } from '../../../src/domain/profile.ts';
import { script } from '../../../src/redis/connection/script-loader.ts';
import { readScript } from '../../../src/redis/connection/script-source.ts';

const readProfile = script<(string | number)[], unknown>('profile/read');
const authenticate = script<(string | number)[], unknown>('api_key/authenticate');
const putProfile = script<(string | number)[], unknown>('profile/put');

const program = new Command('npx tsx scripts/bench/studies/one-slot.ts')
  .description(
    'Measure what one Redis process, and so one organization, can do at most: redis-benchmark sends the real scripts to one slot, without the bridge.',
  )
  .action(study);

async function study(): Promise<void> {
  const base = baseOf('bridge');
  const releasers = createReleasers();
  try {
    const redis = await startRedis();
    releasers.onClose('redis', redis.stop);
    const store = await connectRedis(redis.url, { commandTimeout: 10_000 });
    releasers.onClose('connection', () => closeRedis(store));
    await seedOrganization(store, 'bridge');

    const sha256 = hash('sha256', playerKeyOf(7));
    const keys = [base, `${base}-`];
    const user = userId(7);
    const name = 'player-000007';
    await readProfile(store, base, sha256);
    await authenticate(store, base, sha256);
    const setAvatar = [user, name, '', '', '', 'keep', '', 'reference', encodeReference(avatar)];
    await putProfile(store, base, 0, '0', ...setAvatar);
    flood('profile/read (GET)', redis.port, shaOf('profile/read'), [...keys, sha256]);
    flood('api_key/authenticate (first half of a PUT)', redis.port, shaOf('api_key/authenticate'), [
      ...keys,
      sha256,
    ]);
    flood('profile/put (second half)', redis.port, shaOf('profile/put'), [...keys, '0', '0', ...setAvatar]);
  } finally {
    await releasers.close();
  }
}

/** 50 connections, 16 commands in flight on each. */
function flood(what: string, port: number, sha: string, [...keysAndArguments]: string[]): void {
  const said = execFileSync('redis-benchmark', [
    '-p',
    String(port),
    '-n',
    '400000',
    '-c',
    '50',
    '-P',
    '16',
    '--csv',
    'EVALSHA',
    sha,
    '2',
    ...keysAndArguments,
  ]).toString();
  const [, figures = ''] = said.trim().split('\n').slice(-2);
  const rate = /","([\d.]+)"/.exec(figures)?.[1] ?? figures;
  print(`${what}: ${Math.round(Number(rate))} operations/s`);
}

function shaOf(file: string): string {
  return hash('sha1', readScript(file)().lua, 'hex');
}

await runTool(program);
