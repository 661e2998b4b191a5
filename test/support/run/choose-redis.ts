import { spawnSync } from 'node:child_process';
import { request } from 'node:http';
import { GenericContainer, Wait } from 'testcontainers';
import { startCluster } from '../servers/redis-cluster.ts';
import { startRedis } from '../redis.ts';

export interface ChosenRedis {
  url: string;
  stop: () => Promise<void>;
  /** What was used, and what was skipped because it is missing, in one line. */
  description: string;
}

/**
 * TEST_REDIS_URL if set; else testcontainers where a Docker engine holds the image REDIS_TEST_IMAGE (default
 * redis:7); else a redis-server process. TEST_REDIS=testcontainers (pulls the image if need be) or
 * TEST_REDIS=process insists. TEST_REDIS=cluster runs on a Redis Cluster of local processes, three masters with
 * a replica each.
 */
export async function chooseRedis(env: NodeJS.ProcessEnv): Promise<ChosenRedis> {
  const given = env['TEST_REDIS_URL'];
  const insisted = env['TEST_REDIS'];
  const image = env['REDIS_TEST_IMAGE'] ?? 'redis:7';
  if (insisted !== undefined && !['process', 'testcontainers', 'cluster'].includes(insisted)) {
    throw new Error(`TEST_REDIS is "${insisted}": say process, testcontainers or cluster, or leave it unset`);
  }
  if (given !== undefined && insisted === undefined) {
    return { url: given, stop: async () => {}, description: 'the one of TEST_REDIS_URL' };
  }
  if (insisted === 'process') return inProcess('as TEST_REDIS=process says');
  if (insisted === 'cluster') return inCluster();
  if (insisted === 'testcontainers') return inContainer(image);
  const missing = await dockerLacks(image, env['DOCKER_HOST']);
  if (missing === undefined) return inContainer(image);
  if (localVersion() !== undefined) return inProcess(`skipped testcontainers: ${missing}`);
  throw new Error(
    `no Redis to test on: no redis-server on the PATH, and ${missing}; run npm run redis:install`,
  );
}

async function inProcess(why: string): Promise<ChosenRedis> {
  const { url, stop } = await startRedis();
  return { url, stop, description: `a process at ${url}, ${localVersion()} (${why})` };
}

/** The version output of the server that startRedis uses, or undefined if there is none. */
function localVersion(): string | undefined {
  const ask = '$(command -v redis-server || command -v valkey-server) --version';
  const { status, stdout } = spawnSync('sh', ['-c', ask], { encoding: 'utf8' });
  return status === 0 ? stdout.trim().replace(/ (sha|malloc)=.*/, '') : undefined;
}

async function inCluster(): Promise<ChosenRedis> {
  const { url, stop } = await startCluster({ replicas: true });
  return {
    url,
    stop,
    description: `a cluster of processes, 3 masters and 3 replicas, at ${url}, ${localVersion()}`,
  };
}

async function inContainer(image: string): Promise<ChosenRedis> {
  const container = await new GenericContainer(image)
    .withExposedPorts(6379)
    .withCommand(['redis-server', '--save', '', '--appendonly', 'no', '--protected-mode', 'no'])
    // The default strategy looks for the port with tools a small image has not got.
    .withWaitStrategy(Wait.forLogMessage('Ready to accept connections'))
    .start();
  const url = `redis://${container.getHost()}:${container.getMappedPort(6379)}`;
  return {
    url,
    stop: async () => {
      await container.stop();
    },
    description: `testcontainers, image ${image}, at ${url}`,
  };
}

/** Why testcontainers cannot be used at once, or undefined when it can. */
async function dockerLacks(image: string, host = 'unix:///var/run/docker.sock'): Promise<string | undefined> {
  const status = await new Promise<number | undefined>((resolve) => {
    const { protocol, hostname, port, pathname } = new URL(host);
    const engine = protocol === 'unix:' ? { socketPath: pathname } : { host: hostname, port };
    const path = `/images/${encodeURIComponent(image)}/json`;
    const call = request({ ...engine, path, timeout: 2000 }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    call.on('timeout', () => call.destroy());
    call.on('error', () => resolve(undefined));
    call.on('close', () => resolve(undefined));
    call.end();
  });
  if (status === undefined) return 'no Docker engine answers';
  return status === 200 ? undefined : `the Docker engine has no image ${image}`;
}
