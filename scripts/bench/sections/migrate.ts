import { spawn } from 'node:child_process';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeReference } from '../../../src/domain/objects.ts';
import { namesBucketKey, profileKey, settingsKey } from '../../../src/redis/keys.ts';
import { bucketOf, bucketsFor, command } from '../pipe.ts';
import { openStore } from '../resources.ts';
import { ratioRow, type Section } from '../report/section.ts';
import { avatar, avatarUrl, baseOf, pictureUrl, userId, wallet } from '../load/seed.ts';
import { ratio } from '../report/stats.ts';

const profiles = 300_000;
const organization = 'migrate';
const changedAt = 1_767_323_045_678;

/** Seconds of one round. */
interface Round {
  pipe: number;
  /** From the command's start to its end, all passes, Node's own start apart. */
  apply: number;
}

export const migrate: Section = {
  name: 'migrate',
  about: `${profiles.toLocaleString('en')} profiles from NDJSON, beside redis-cli --pipe of the same final keys`,
  run: async ({ rounds, say }) => {
    const folder = await mkdtemp(join(tmpdir(), 'pb-bench-migrate-'));
    const { url, store, close } = await openStore();
    try {
      const source = await writeInputs(folder);
      const measured: Round[] = [];
      // A round is long enough to need no more of them.
      for (let round = 0; round < Math.min(rounds, 3); round += 1) {
        await store.flushall('ASYNC');
        const pipe = await timePipe(url, join(folder, 'keys.resp'));
        await store.flushall('ASYNC');
        const apply = await timeApply(url, source);
        measured.push({ pipe, apply });
        say(`  round ${round + 1}: pipe ${pipe.toFixed(2)} s, apply ${apply} s`);
      }
      const best = Math.min(...measured.map(({ apply }) => apply));
      return [
        ratioRow(
          'migrate apply, all passes / redis-cli --pipe',
          ratio(
            measured.map((round) => 1 / round.apply),
            measured.map((round) => 1 / round.pipe),
          ),
          `${Math.round(profiles / best / 1000)}k profiles/s at best`,
          { atLeast: 0.6 },
        ),
      ];
    } finally {
      await close();
      await rm(folder, { recursive: true, force: true });
    }
  },
};

/** The source, and the same data as commands in Redis' protocol. */
async function writeInputs(folder: string): Promise<string> {
  const object = { organizationId: organization, ...avatar, url: avatarUrl };
  await writeFile(join(folder, 'objects.ndjson'), [`${JSON.stringify(object)}\n`]);
  await writeFile(join(folder, 'profiles.ndjson'), lines());
  await writeFile(join(folder, 'keys.resp'), commands());
  return folder;
}

function nameOf(user: number): string {
  return `player-${String(user).padStart(6, '0')}`;
}

function* lines(): Generator<string> {
  for (let user = 0; user < profiles; user += 1) {
    const record = {
      organizationId: organization,
      userId: userId(user),
      username: nameOf(user),
      profilePictureUrl: pictureUrl,
      avatar,
      evmWalletAddress: wallet,
      evmWalletVerified: true,
      updatedAt: changedAt,
    };
    yield `${JSON.stringify(record)}\n`;
  }
}

function* commands(): Generator<string> {
  const base = baseOf(organization);
  const buckets = bucketsFor(profiles);
  yield command('HSET', settingsKey(base), 'n0', String(buckets));
  const rest = ['pu', pictureUrl, 'ar', encodeReference(avatar), 'w', wallet, 't', String(changedAt)];
  for (let user = 0; user < profiles; user += 1) {
    const [id, name] = [userId(user), nameOf(user)];
    yield command('HSET', profileKey(base, id), 'u', name, ...rest);
    yield command('HSET', namesBucketKey(base, '0', bucketOf(name, buckets)), name, id);
  }
}

async function writeFile(path: string, parts: Iterable<string>): Promise<void> {
  const file = createWriteStream(path);
  let block = '';
  for (const part of parts) {
    block += part;
    if (block.length < 1_000_000) continue;
    if (!file.write(block)) await once(file, 'drain');
    block = '';
  }
  file.end(block);
  await once(file, 'close');
}

async function timePipe(url: string, path: string): Promise<number> {
  const startedAt = performance.now();
  const cli = spawn('redis-cli', ['-u', url, '--pipe'], { stdio: ['pipe', 'ignore', 'ignore'] });
  createReadStream(path, { highWaterMark: 1 << 20 }).pipe(cli.stdin);
  const [code] = (await once(cli, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`redis-cli --pipe ended with ${code}`);
  return (performance.now() - startedAt) / 1000;
}

async function timeApply(url: string, source: string): Promise<number> {
  const tool = spawn('npm', ['run', '-s', 'migrate', '--', 'apply', '--source', source, '--json'], {
    env: { ...process.env, REDIS_URL: url },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  tool.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString();
  });
  const [code] = (await once(tool, 'close')) as [number | null];
  if (code !== 0) throw new Error(`migrate apply ended with ${code}`);
  return (JSON.parse(out) as { seconds: number }).seconds;
}
