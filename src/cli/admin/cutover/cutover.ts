import { Command } from 'commander';
import { defineCutoverScripts, readCutover, type CutoverState } from '../../../cutover/switch/registry.ts';
import { formatInstant } from '../../../lib/iso8601.ts';
import type { AdminContext, Report } from '../context.ts';
import { addExamples, withExamples } from '../options.ts';

/** `admin cutover`: takes over from a live legacy service, step by step (src/cutover/README.md). */
export function cutoverCommand(context: AdminContext): Command {
  const group = new Command('cutover').description(
    'takes over from a live legacy service, step by step: shadow, mirror, reverse, native',
  );

  const show = group
    .command('show')
    .description('shows the mode, since when it holds and which command set it')
    .action(async (options: { json?: boolean }) => {
      context.finish(await showMode(context), options);
    });
  withExamples(show, ['cutover show', 'cutover show --json']);

  return addExamples(group, ['cutover show']);
}

async function showMode(context: AdminContext): Promise<Report> {
  const { keyPrefix, legacyBaseUrl } = context.config();
  const state = await readCutover(defineCutoverScripts(await context.store()), keyPrefix);
  const { mode, epoch, since, by, underWay, isStored } = state;
  return {
    kind: 'done',
    json: {
      mode,
      isStored,
      number: epoch,
      ...(since > 0 && { since: formatInstant(since), by }),
      ...(underWay && { switchingTo: underWay.to, phase: underWay.phase }),
    },
    text: describeMode(state, legacyBaseUrl !== undefined),
  };
}

function describeMode({ mode, since, by, underWay, isStored }: CutoverState, hasLegacy: boolean): string {
  if (!isStored) {
    const then = hasLegacy ? '; an instance started with LEGACY_BASE_URL will start in shadow' : '';
    return `Mode: native (no mode was ever set${then})`;
  }
  const lines = [`Mode: ${mode}`];
  if (since > 0) lines.push(`Since: ${formatInstant(since)}, set by: ${by}`);
  if (underWay) lines.push(`A switch to ${underWay.to} is under way (phase: ${underWay.phase}).`);
  return lines.join('\n');
}
