import { describe, test } from '@jest/globals';
import { startCommandProxy } from '../../scripts/drills/tools/proxy.ts';
import { testRedisUrl } from '../support/redis.ts';
import { createTool, type Tool } from '../support/tools/migrate.ts';

const isCluster = testRedisUrl().startsWith('redis+cluster:');

/** `describe` and `test`, or visibly skipped on a cluster: the proxy stands before a single server. */
export const describeProxied = isCluster ? describe.skip : describe;
export const testProxied = isCluster ? test.skip : test;

/** The tool on the same keys, through a proxy that asks what to do with each of its commands. */
export async function startProxied(
  { prefix }: Tool,
  decide: Parameters<typeof startCommandProxy>[1],
): Promise<{ tool: Tool; close: () => Promise<void> }> {
  const { hostname: host, port } = new URL(testRedisUrl());
  const { url, close } = await startCommandProxy({ host, port: Number(port) }, decide);
  return { tool: createTool(url, prefix), close };
}
