import { authorityOf } from '../../../src/cutover/modes.ts';
import { programOf } from '../../../test/support/run/program.ts';
import { startCommandProxy } from '../tools/proxy.ts';
import { createNames, startTraffic, type Call } from './clients.ts';
import { doubleAuthority, failedCalls, lostChanges } from './judge.ts';
import { describeResult, type CutoverResult } from './results.ts';
import { inDoubt, prepare, untilEqual, untilSettled } from './settle.ts';
import { openSite, organizationId, type Site } from './site.ts';
import { startTool, type ToolProcess } from '../tool-process.ts';
import { createStepper, steps, type Step } from './steps.ts';
import { stops, type Stop } from './stops.ts';
import { isForced, nameOf, switches, type Switch } from './switches.ts';

export interface CutoverDrillOptions {
  /** Only switches, as `mirror -> native`, steps and stops whose names match. */
  switch?: RegExp;
  step?: RegExp;
  stop?: RegExp;
  /** At how many commands of each step at most, beginning at the `first`. */
  commands: number;
  first?: number | undefined;
  say: (line: string) => void;
}

/**
 * Runs `cutover set` as a process in front of two bridges under load, and stops something at each of its steps. Then
 * checks what clients saw, what the two sides recorded and what they hold in the end.
 */
export async function drillCutover(options: CutoverDrillOptions): Promise<CutoverResult[]> {
  const { say, commands, first = 1 } = options;
  const results: CutoverResult[] = [];
  const site = await openSite();
  const newName = createNames();
  const chosen = {
    switches: switches.filter((one) => (options.switch ?? /^/).test(nameOf(one))),
    steps: steps.filter((step) => (options.step ?? /^/).test(step)),
    stops: stops.filter(({ name }) => (options.stop ?? /^/).test(name)),
  };
  try {
    for (const one of chosen.switches) {
      for (const stop of chosen.stops) {
        for (const step of stop.name === 'nothing' ? (['before the switch'] as const) : chosen.steps) {
          const last = stop.name === 'nothing' ? first : first + commands - 1;
          for (let occurrence = first; occurrence <= last; occurrence++) {
            const result = await drillPoint(site, newName, one, { step, occurrence, stop });
            if (result === undefined) {
              // A step may need fewer commands, or none; a switch may be withdrawn before it.
              if (occurrence === first) say(`${nameOf(one)}, ${step}, ${stop.name}: not reached`);
              break;
            }
            results.push(result);
            say(describeResult(result));
          }
        }
      }
    }
  } finally {
    await site.close();
  }
  return results;
}

interface Point {
  step: Step;
  /** The position of the command in the step. */
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

  const stepOf = createStepper(one.from);
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
    tool = startTool(programOf('scripts/admin'), ['cutover', 'set', one.to, ...one.options], {
      ALLOW_EVICTION: '1',
      ...env,
      REDIS_URL: proxy.url,
    });
    const ran = await tool.ended;
    said = `${ran.err}${ran.out}`.trimEnd().split('\n').at(-1) ?? '';
    await running;
    if (isInjected && stop.name === 'instance killed') await bridges[0].restart();
    violations.push(...(await untilSettled(site, traffic)));
    const { mode } = await site.state();
    const reported = ran.code === 0 ? one.to : said.includes('as before') ? one.from : mode;
    if (mode !== reported) violations.push(`the tool says that the mode is ${reported}, yet it is ${mode}`);
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

async function judge(site: Site, one: Switch, stop: Stop, calls: readonly Call[]): Promise<string[]> {
  const { mode, history } = await site.state();
  const violations = failedCalls(calls, stop.allows);
  if (mode !== one.from && mode !== one.to) violations.push(`the mode is ${mode}`);
  if (mode === 'mirror' || mode === 'reverse') violations.push(...(await untilEqual(site)));
  const record = {
    calls,
    legacyChanges: site.legacyChanges,
    history,
    stored: authorityOf(mode) === 'legacy' ? site.storedByLegacy() : await site.stored(),
    // A switch by --force goes on without what was in doubt; it is listed.
    inDoubt: new Set(isForced(one) ? await inDoubt(site) : []),
  };
  return [...violations, ...doubleAuthority(record), ...lostChanges(record)];
}
