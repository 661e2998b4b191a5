import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { authorityOf, type Mode } from '../../../src/cutover/modes.ts';
import { number } from '../../../src/lib/numbers.ts';
import { table } from '../../../src/lib/system/terminal.ts';
import { cutoverKey, gapsKey, organizationBase, unsettledKey } from '../../../src/redis/keys.ts';
import { keyPrefix } from '../history/deployment.ts';
import { startCommandProxy } from '../tools/proxy.ts';
import { createNames, startTraffic, type Call, type Traffic } from './clients.ts';
import { doubleAuthority, failedCalls, lostChanges } from './judge.ts';
import {
  importIntoLegacy,
  openSite,
  organizationId,
  startTool,
  switchTo,
  type Site,
  type ToolProcess,
} from './site.ts';
import { createStepper, steps, type Step } from './steps.ts';
import { stops, type Stop } from './stops.ts';

/** A switch that is interrupted. */
interface Switch {
  from: Mode;
  to: Mode;
  options: readonly string[];
}

const switches: readonly Switch[] = [
  { from: 'shadow', to: 'mirror', options: [] },
  { from: 'mirror', to: 'shadow', options: [] },
  // Takes authority, and needs --force since it skips a mode.
  { from: 'mirror', to: 'native', options: ['--force'] },
];

export interface CutoverDrillOptions {
  /** Only switches, as `mirror -> native`, steps and stops whose names match. */
  switches?: RegExp;
  steps?: RegExp;
  stops?: RegExp;
  /** At how many commands of each step at most. */
  commands: number;
  say: (line: string) => void;
}

/** What became of a switch with one thing stopped at one of its commands. */
export interface CutoverResult {
  name: string;
  step: Step;
  stopped: string;
  /** Whether the new mode came into force. */
  isSwitched: boolean;
  /** What the tool said last. */
  said: string;
  calls: number;
  unavailable: number;
  broken: number;
  /** The longest time that a change, and a read, took, in ms. */
  slowestChange: number;
  slowestRead: number;
  violations: string[];
}

/**
 * Runs `cutover set` as a process in front of two bridges under load, and stops something at each of its steps. What
 * clients saw, what the two sides recorded and what is left are judged.
 */
export async function drillCutover(options: CutoverDrillOptions): Promise<CutoverResult[]> {
  const { say, commands } = options;
  const results: CutoverResult[] = [];
  const site = await openSite();
  const newName = createNames();
  const chosen = {
    switches: switches.filter((one) => (options.switches ?? /^/).test(nameOf(one))),
    steps: steps.filter((step) => (options.steps ?? /^/).test(step)),
    stops: stops.filter(({ name }) => (options.stops ?? /^/).test(name)),
  };
  try {
    for (const one of chosen.switches) {
      for (const stop of chosen.stops) {
        for (const step of stop.name === 'nothing' ? (['before the switch'] as const) : chosen.steps) {
          for (let occurrence = 1; occurrence <= (stop.name === 'nothing' ? 1 : commands); occurrence++) {
            const result = await drillPoint(site, newName, one, { step, occurrence, stop });
            // A step may need fewer commands, or none.
            if (result === undefined) break;
            results.push(result);
            say(describe(result));
          }
        }
      }
    }
  } finally {
    await site.close();
  }
  return results;
}

const nameOf = ({ from, to }: Switch): string => `${from} -> ${to}`;

interface Point {
  step: Step;
  /** The how many-th command of the step. */
  occurrence: number;
  stop: Stop;
}

async function drillPoint(
  site: Site,
  newName: (user: string) => string,
  one: Switch,
  { step, occurrence, stop }: Point,
): Promise<CutoverResult | undefined> {
  const { bridges, redis, env, players, admin } = site;
  await prepare(site, newName, one.from);
  site.legacyChanges.length = 0;
  const traffic = startTraffic({
    bridges: bridges.map(({ url }) => url),
    organizationId,
    players,
    admin,
    newName,
  });

  const stepOf = createStepper();
  let seen = 0;
  let isInjected = false;
  let running: Promise<void> | undefined;
  let tool: ToolProcess | undefined;
  const target = new URL(redis.url);
  const proxy = await startCommandProxy(
    { host: target.hostname, port: Number(target.port) },
    async (_position, words) => {
      if (stepOf(words) !== step || ++seen !== occurrence || tool === undefined) return 'forward';
      isInjected = true;
      const { action, until } = await stop.stop({ bridges, redis, tool });
      running = until;
      return action;
    },
  );
  const violations: string[] = [];
  let said = '';
  try {
    tool = startTool({ ...env, REDIS_URL: proxy.url }, ['cutover', 'set', one.to, ...one.options]);
    const ran = await tool.ended;
    said = `${ran.err}${ran.out}`.trimEnd().split('\n').at(-1) ?? '';
    await running;
    if (isInjected && stop.name === 'instance killed') await bridges[0].restart();
    violations.push(...(await untilSettled(site, traffic)));
    const { mode } = await site.state();
    if (
      ran.code === 0 ? mode !== one.to : mode !== one.from && !/^error: /m.test(ran.err) && ran.code === 1
    ) {
      violations.push(`the tool exited with ${ran.code}, yet the mode is ${mode}: ${ran.err}`);
    }
    if (!isInjected) return undefined;
    if (stop.name === 'nothing' && ran.code !== 0) violations.push(`nothing was stopped, yet: ${said}`);
  } finally {
    await traffic.stop();
    await tool?.kill();
    await proxy.close();
  }
  violations.push(...(await judge(site, one, stop, traffic.calls)));
  const { mode } = await site.state();
  const slowest = (kinds: readonly Call['kind'][]): number =>
    Math.max(
      0,
      ...traffic.calls
        .filter(({ kind, status }) => kinds.includes(kind) && status !== 'broken')
        .map(({ sentAt, endedAt }) => endedAt - sentAt),
    );
  return {
    name: nameOf(one),
    step,
    stopped: stop.name,
    isSwitched: mode === one.to,
    said,
    calls: traffic.calls.length,
    unavailable: traffic.calls.filter(({ status }) => Number(status) >= 500).length,
    broken: traffic.calls.filter(({ status }) => status === 'broken').length,
    slowestChange: slowest(['change', 'ban']),
    slowestRead: slowest(['read']),
    violations: [...new Set(violations)],
  };
}

/** Brings all to the mode, with the same data on both sides. */
async function prepare(site: Site, newName: (user: string) => string, mode: Mode): Promise<void> {
  const { store, legacy, players, bridges } = site;
  const base = organizationBase(keyPrefix, organizationId);
  let { mode: now } = await site.state();
  if (now === 'native') {
    await importIntoLegacy(site);
    await switchTo(site, 'shadow');
    now = 'shadow';
  }
  if (now !== mode) await switchTo(site, mode);
  // What a kill has left in doubt is what it is there for; here all begins anew.
  await store.del(unsettledKey(base), gapsKey(base));
  await store.hdel(cutoverKey(keyPrefix), 'gap');
  legacy.organization(organizationId).denied.clear();
  for (const { user, apiKey } of players) {
    const response = await fetch(`${bridges[0].url}/api/profile/`, {
      method: 'PUT',
      headers: { 'x-api-key': apiKey, 'x-platform-organization-id': organizationId },
      body: JSON.stringify({ username: newName(user) }),
    });
    await response.text();
  }
  if (mode === 'mirror') await untilEqual(site);
}

/** Waits until no switch is under way and both bridges make changes; what is wrong where they never do. */
async function untilSettled(site: Site, { calls }: Traffic): Promise<string[]> {
  const deadline = performance.now() + 20_000;
  while ((await site.state()).underWay !== undefined) {
    if (performance.now() > deadline) return ['the switch is neither made nor withdrawn'];
    await sleep(50);
  }
  const settledAt = Date.now();
  const hasChanged = (bridge: number): boolean =>
    calls.some(
      (call) =>
        call.bridge === bridge && call.kind === 'change' && call.status === 200 && call.sentAt > settledAt,
    );
  while (!hasChanged(0) || !hasChanged(1)) {
    if (performance.now() > deadline) return ['a bridge makes no changes any more'];
    await sleep(50);
  }
  return [];
}

async function judge(site: Site, one: Switch, stop: Stop, calls: readonly Call[]): Promise<string[]> {
  const { mode, history } = await site.state();
  const violations = failedCalls(calls, stop.allows);
  if (mode !== one.from && mode !== one.to) violations.push(`the mode is ${mode}`);
  if (mode === 'mirror') violations.push(...(await untilEqual(site)));
  const isForced = one.options.includes('--force');
  const hasGap = (await site.store.exists(gapsKey(organizationBase(keyPrefix, organizationId)))) === 1;
  const marks = isForced ? [...(await marked(site)), ...(hasGap ? [''] : [])] : [];
  const record = {
    calls,
    legacyChanges: site.legacyChanges,
    history,
    mode,
    stored: authorityOf(mode) === 'legacy' ? site.storedByLegacy() : await site.stored(),
    // A switch by --force goes on without what was in doubt; it is listed.
    inDoubt: new Set(marks),
  };
  return [...violations, ...doubleAuthority(record), ...lostChanges(record)];
}

async function marked({ store }: Site): Promise<string[]> {
  return await store.hkeys(unsettledKey(organizationBase(keyPrefix, organizationId)));
}

/** In mirror: waits until Redis has what the legacy service has, while users read. The denylist may be in doubt. */
async function untilEqual(site: Site): Promise<string[]> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    const [here, there] = [await site.stored(), site.storedByLegacy()];
    // What was banned before was not mirrored.
    const { since } = await site.state();
    const banned = there.denied.filter((name) =>
      site.legacyChanges.some((change) => change.name === name && change.at > since),
    );
    const marks = await marked(site);
    const isDenylistKnown =
      !marks.includes('') &&
      (await site.store.exists(gapsKey(organizationBase(keyPrefix, organizationId)))) === 0;
    const isEqual =
      isDeepStrictEqual(here.usernames, there.usernames) &&
      (!isDenylistKnown || banned.every((name) => here.denied.includes(name)));
    if (isEqual && marks.every((user) => user === '')) return [];
    if (performance.now() > deadline) {
      return [`Redis does not catch up: ${JSON.stringify({ here, there, marks })}`];
    }
    for (const { apiKey } of site.players) {
      const response = await fetch(`${site.bridges[1].url}/api/profile/`, {
        headers: { 'x-api-key': apiKey, 'x-platform-organization-id': organizationId },
      });
      await response.text();
    }
    await sleep(250);
  }
}

function describe({ name, step, stopped, said, violations }: CutoverResult): string {
  return [
    `${name}, ${step}, ${stopped}: ${said}`,
    ...violations.slice(0, 5).map((one) => `  VIOLATION: ${one}`),
  ].join('\n');
}

/** One row for each switch, step and what was stopped there. */
export function describeCutoverResults(results: readonly CutoverResult[]): string {
  const figures = [
    'points',
    'switched',
    'requests',
    '5xx',
    'broken',
    'slowest change',
    'slowest read',
    'violations',
  ];
  const groups = new Map<string, CutoverResult[]>();
  for (const result of results) {
    const key = `${result.name}\n${result.step}\n${result.stopped}`;
    groups.set(key, [...(groups.get(key) ?? []), result]);
  }
  const sum = (group: readonly CutoverResult[], of: (one: CutoverResult) => number): string =>
    number(group.reduce((total, one) => total + of(one), 0));
  const slowest = (group: readonly CutoverResult[], of: (one: CutoverResult) => number): string =>
    `${(Math.max(...group.map(of)) / 1000).toFixed(1)} s`;
  const rows = [...groups].map(([key, group]) => [
    ...key.split('\n'),
    number(group.length),
    sum(group, ({ isSwitched }) => Number(isSwitched)),
    sum(group, ({ calls }) => calls),
    sum(group, ({ unavailable }) => unavailable),
    sum(group, ({ broken }) => broken),
    slowest(group, ({ slowestChange }) => slowestChange),
    slowest(group, ({ slowestRead }) => slowestRead),
    sum(group, ({ violations }) => violations.length),
  ]);
  return table(['switch', 'step', 'stopped', ...figures], rows, figures);
}
