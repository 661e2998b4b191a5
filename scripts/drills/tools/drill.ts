import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { forEachConcurrently } from '../../../src/lib/collections/for-each-concurrently.ts';
import { counted, formatNumber } from '../../../src/lib/numbers.ts';
import { table } from '../../../src/lib/system/terminal.ts';
import { closeRedis, connectRedis } from '../../../src/redis/connection/connect.ts';
import { putProfile } from '../../../src/redis/profiles.ts';
import { readWriteSnapshot } from '../../../src/redis/changes.ts';
import type { Ran } from '../../../test/support/tools/admin.ts';
import { startRedis, type RedisProcess } from '../../../test/support/redis.ts';
import { toolFaults, type ToolFault } from './faults.ts';
import { brokenInvariants, copyKeys, readContents, type Contents } from './inspect.ts';
import { startCommandProxy } from './proxy.ts';
import { organizationId } from './records.ts';
import { baseOf, createTools, type Tool } from './tools.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';

export interface ToolDrillOptions {
  /** Only tools and faults whose names match. */
  tool?: RegExp;
  fault?: RegExp;
  /** Every n-th command, beginning at the `first`: 1 for all. */
  step: number;
  first?: number | undefined;
  say: (line: string) => void;
}

export interface ToolResult {
  tool: string;
  fault: string;
  /** Commands that the tool sends. */
  commands: number;
  injected: number;
  /** At most one for each fault. */
  violations: string[];
}

/** Runs at once: most of them wait. */
const atOnce = 24;
/** How long leases of an interrupted tool may block a tool after a fault, in ms. */
const retryFor = 40_000;

/** The environment of the drill. */
interface Site {
  redis: RedisProcess;
  store: RedisClient;
  env: (prefix: string, url?: string) => Record<string, string>;
}

/** Interrupts each tool at every n-th command in each way; whatever is lost, broken or never done is a violation. */
export async function drillTools(options: ToolDrillOptions): Promise<ToolResult[]> {
  const { step, first = 1, say } = options;
  const tools = (await createTools()).filter(({ name }) => (options.tool ?? /^/).test(name));
  const faults = toolFaults.filter(({ name }) => (options.fault ?? /^/).test(name));
  const redis = await startRedis();
  // Many runs at once delay each other.
  const store = await connectRedis(redis.url, { commandTimeout: 30_000 });
  const folder = await mkdtemp(join(tmpdir(), 'drill-tools-'));
  const site: Site = {
    redis,
    store,
    env: (prefix, url = redis.url) => ({
      REDIS_URL: url,
      KEY_PREFIX: prefix,
      ALLOW_EVICTION: '1',
      DATA_DIR: folder,
    }),
  };
  const results: ToolResult[] = [];
  const points: (() => Promise<void>)[] = [];
  let done = 0;
  try {
    for (const tool of tools) {
      const template = await makeTemplate(site, tool);
      for (const fault of faults) {
        const { commands } = template;
        const result: ToolResult = {
          tool: tool.name,
          fault: fault.name,
          commands,
          injected: 0,
          violations: [],
        };
        results.push(result);
        for (let position = first; position <= commands; position += step) {
          points.push(async () => {
            const { isInjected, violations } = await drillPoint(site, template, tool, fault, position);
            if (++done % 100 === 0) say(`${done} of ${points.length} faults injected`);
            if (isInjected) result.injected++;
            if (violations.length === 0) return;
            result.violations.push(summary(tool, fault, position, violations));
            say(`VIOLATION: ${result.violations.at(-1)}`);
          });
        }
      }
    }
    say(`${counted(points.length, 'fault')} to inject`);
    await forEachConcurrently(points, atOnce, (drill) => drill());
  } finally {
    await closeRedis(store);
    await redis.stop();
  }
  return results;
}

function summary(tool: Tool, fault: ToolFault, position: number, violations: readonly string[]): string {
  const shown = violations.slice(0, 3).join('; ');
  const more = violations.length > 3 ? `; and ${violations.length - 3} more` : '';
  return `${tool.name}, ${fault.name} at command ${position}: ${shown}${more}`;
}

/** What a tool starts from, and its result without interruption. */
interface Template {
  prefix: string;
  commands: number;
  expected: Contents;
  output: string;
}

async function makeTemplate(site: Site, tool: Tool): Promise<Template> {
  const prefix = `${tool.name.replaceAll(/\W+/g, '-')}:`;
  mustSucceed(`the preparation of ${tool.name}`, await tool.prepare(site.env(prefix)));
  await tool.damage?.(site.store, prefix);
  const undisturbed = `undisturbed-${prefix}`;
  await copyKeys(site.store, prefix, undisturbed);
  const proxy = await startCommandProxy(site.redis, () => 'forward');
  const ran = await tool.run(site.env(undisturbed, proxy.url));
  await proxy.close();
  mustSucceed(tool.name, ran);
  const expected = await readContents(site.store, undisturbed, organizationId);
  return { prefix, commands: proxy.commands(), expected, output: ran.out };
}

function mustSucceed(name: string, { code, out, err }: Ran): void {
  if (code !== 0) throw new Error(`${name} fails without any fault (${code}): ${err}${out}`);
}

async function drillPoint(
  site: Site,
  template: Template,
  tool: Tool,
  fault: ToolFault,
  position: number,
): Promise<{ isInjected: boolean; violations: string[] }> {
  const prefix = `${position}-${fault.name.replaceAll(' ', '-')}-${template.prefix}`;
  await copyKeys(site.store, template.prefix, prefix);
  const env = site.env(prefix);
  const expected = JSON.parse(JSON.stringify(template.expected)) as Contents;
  const violations: string[] = [];
  let hasRival = false;
  let isInjected = false;
  let meanwhile: Promise<void> | undefined;

  const proxy = await startCommandProxy(site.redis, async (at) => {
    if (at !== position || isInjected) return 'forward';
    isInjected = true;
    meanwhile = fault.meanwhile?.({
      rival: async () => {
        hasRival = true;
        await (tool.rival ?? tool.run)(env);
      },
      rename: async () => {
        for (const [user, username] of tool.renames ?? []) {
          await rename(site.store, prefix, user, username, expected);
        }
      },
    });
    await meanwhile;
    return fault.action;
  });
  const ran = await tool.run(site.env(prefix, proxy.url));
  // The tool may have given up before.
  await meanwhile;
  await proxy.close();

  const found = await readContents(site.store, prefix, organizationId);
  if (tool.damage === undefined) violations.push(...brokenInvariants(found));
  if (ran.code === 0 && !hasRival) {
    violations.push(
      ...differences(expected, found).map((difference) => `it said it was done, yet ${difference}`),
    );
    if (tool.name === 'migrate export' && ran.out !== template.output)
      violations.push('it exported something else');
  }

  violations.push(...(await runToItsEnd(tool.run, env)));
  if (hasRival && tool.rival !== undefined) {
    violations.push(...(await runToItsEnd(tool.rival, env)));
    expected.settings['min'] = '2';
  }
  const left = await readContents(site.store, prefix, organizationId);
  violations.push(...brokenInvariants(left), ...differences(expected, left));
  violations.push(...((await tool.check?.(site.store, prefix)) ?? []));
  return { isInjected, violations: [...new Set(violations)] };
}

/** Runs it again until it succeeds; returns its last message if it never does. */
async function runToItsEnd(run: Tool['run'], env: Record<string, string>): Promise<string[]> {
  const deadline = performance.now() + retryFor;
  for (;;) {
    const { code, err } = await run(env);
    if (code === 0) return [];
    if (performance.now() > deadline) return [`run again, it does not succeed: ${err}`];
    await sleep(1000);
  }
}

/** As a user does through the bridge, while the tool assumes that it is alone. */
async function rename(
  store: RedisClient,
  prefix: string,
  user: string,
  username: string,
  expected: Contents,
): Promise<void> {
  const base = baseOf(prefix);
  const snapshot = await readWriteSnapshot(store, base, user);
  const { kind } = await putProfile(store, base, user, { username }, snapshot);
  if (kind !== 'put') return;
  expected.usernames[user] = username;
  expected.rest[`p:${user}`] ??= {};
}

/** The differences from the expected contents; the index is checked against the usernames. */
function differences(expected: Contents, found: Contents): string[] {
  return (['usernames', 'denied', 'settings', 'rest'] as const).flatMap((part) => {
    const names = new Set([...Object.keys(expected[part]), ...Object.keys(found[part])]);
    return [...names].flatMap((name) => {
      const [wanted, got] = [expected[part][name], found[part][name]];
      if (isDeepStrictEqual(wanted, got)) return [];
      return `${part}: ${name} is ${JSON.stringify(got)} instead of ${JSON.stringify(wanted)}`;
    });
  });
}

export function describeToolResults(results: readonly ToolResult[]): string {
  const figures = ['commands', 'faults', 'violations'];
  const rows = results.map(({ tool, fault, commands, injected, violations }) => [
    tool,
    fault,
    ...[commands, injected, violations.length].map(formatNumber),
  ]);
  return table(['tool', 'fault', ...figures], rows, figures);
}
