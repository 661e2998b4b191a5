import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import sharp from 'sharp';
import { runTool } from '../support/tools/admin.ts';
import { startBridge } from '../support/bridge.ts';
import { createClient } from '../support/requests/client.ts';
import { startRedis } from '../support/redis.ts';
import { redPng } from '../support/requests/pictures.ts';

const guide = readFileSync('scripts/deploy/README.md', 'utf8');
const blocks = [...guide.matchAll(/```sh\n(.*?)```/gs)].map(([, commands]) => commands ?? '');
const [backUp, restore] = blocks.filter((commands) => commands.includes('$BACKUP'));

let folder: string;
let close = async (): Promise<void> => {};
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'backup-'));
});
afterEach(async () => {
  await close();
  rmSync(folder, { recursive: true, force: true });
});

function runCommands(commands: string | undefined, env: Record<string, string>): void {
  execFileSync('sh', ['-euc', commands ?? 'exit 1'], {
    cwd: folder,
    env: { PATH: process.env['PATH'], BACKUP: 'backup', ...env },
    stdio: 'pipe',
    timeout: 60_000,
  });
}

/** A bridge, how the tools reach its Redis, and where that Redis keeps its data. */
interface Site {
  redisFolder: string;
  start: () => Promise<{ url: string; env: Record<string, string> }>;
}

function ownRedis(): Site {
  const redisFolder = join(folder, 'redis');
  const start: Site['start'] = async () => {
    const redis = await startRedis(['--appendonly', 'yes'], redisFolder);
    close = redis.stop;
    const bridge = await startBridge({
      redisUrl: redis.url,
      dataDir: join(folder, 'data'),
      keyPrefix: 'pb:',
    });
    close = async () => {
      await bridge.close();
      await redis.stop();
    };
    return { url: bridge.url, env: { DATA_DIR: join(folder, 'data'), REDIS_URL: redis.url } };
  };
  return { redisFolder, start };
}

function embeddedRedis(): Site {
  const dataDir = join(folder, 'data');
  const start: Site['start'] = async () => {
    const bridge = await startBridge({ redisUrl: undefined, dataDir, keyPrefix: 'pb:' });
    close = bridge.close;
    return { url: bridge.url, env: { DATA_DIR: dataDir } };
  };
  return { redisFolder: join(dataDir, 'redis'), start };
}

async function createKey(env: Record<string, string>, ...role: string[]): Promise<string> {
  const { out } = await runTool(env, ['key', 'create', '--org', 'acme', '--role', ...role, '--json']);
  return (JSON.parse(out) as { apiKey: string }).apiKey;
}

test.each([
  ['a Redis of its own', ownRedis, backUp],
  [
    'the embedded Redis',
    embeddedRedis,
    backUp?.replace('-u "$REDIS_URL"', '-s "$DATA_DIR/redis/redis.sock"'),
  ],
])(
  'the commands of the operations guide back up and restore everything, with %s',
  async (_, site, backUpCommands) => {
    const { redisFolder, start } = site();
    mkdirSync(redisFolder, { recursive: true });
    const { url, env } = await start();
    await runTool(env, 'org set acme --username-max 20');
    const player = { organization: 'acme', apiKey: await createKey(env, 'player', '--user', 'u1') };
    const admin = { organization: 'acme', apiKey: await createKey(env, 'admin') };
    const form = new FormData();
    form.append('profilePicture', new Blob([new Uint8Array(await redPng())]));
    form.append('username', 'ada');
    const put = await createClient(url, player).request('PUT', '/api/profile/', { form });
    expect(put.status).toBe(200);
    const denied = { root: 'player-1' };
    await createClient(url, admin).request('POST', '/api/profile/username/deny/', { json: denied });

    runCommands(backUpCommands, env);
    const rename = () =>
      createClient(url, player).request('PUT', '/api/profile/', { json: { username: 'eve' } });
    // A disk that is busy with the copy can make Redis too slow for a moment.
    let later = await rename();
    while (later.status === 503) later = await rename();
    expect(later.status).toBe(200);
    await close();
    close = async () => {};
    renameSync(redisFolder, join(folder, 'lost'));
    rmSync(join(folder, 'data'), { recursive: true, force: true });
    mkdirSync(redisFolder, { recursive: true });

    // Redis reads relative paths from its own folder, the shell from where it is.
    runCommands(restore, { DATA_DIR: 'data', REDIS_DIR: relative(folder, redisFolder) });
    const restored = await start();
    const client = createClient(restored.url, player);
    const { body } = await client.request('GET', '/api/profile/');
    const { username, profilePictureUrl } = body as { username: string; profilePictureUrl: string };
    expect(username).toBe('ada');
    const file = await fetch(new URL(new URL(profilePictureUrl).pathname, restored.url));
    expect([file.status, (await sharp(await file.arrayBuffer()).metadata()).width]).toEqual([200, 8]);
    const refused = await client.request('PUT', '/api/profile/', { json: { username: 'root' } });
    expect(refused.body).toMatchObject({ code: 'username-denied' });
    expect(await runTool(restored.env, 'fsck')).toMatchObject({ code: 0 });
  },
);
