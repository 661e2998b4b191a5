import { expect, test } from '@jest/globals';
import { rehearse, type Plan, type Rehearsed } from '../../../scripts/rehearsal/rehearse.ts';
import { describeRehearsal } from '../../../scripts/rehearsal/report.ts';
import { programOf } from '../../support/run/program.ts';
import { undisturbed } from '../../support/run/undisturbed.ts';

test('a whole cut-over while bridges are killed loses nothing, and no client notices', async () => {
  let events: string[] = [];
  const plan: Plan = {
    program: programOf('scripts/profile-bridge'),
    users: 200,
    rate: 60,
    seconds: 2,
    // Longer than a slow machine may hold up one of the processes.
    legacyTimeout: 10,
    pause: [3, 10],
    kills: 0,
    // A take-over has to wait until nothing can take effect any more that a killed bridge has forwarded.
    mostKills: 2,
    seed: 1,
    say: (_, line) => void events.push(line),
  };
  const run = async (): Promise<Rehearsed> => {
    events = [];
    return await rehearse(plan);
  };
  const rehearsed = await undisturbed(run, ({ violations }) => violations.length > 0);
  expect({ violations: rehearsed.violations, events }).toEqual({ violations: [], events });
  expect(rehearsed.phases.flatMap(({ kills }) => kills).some((kills) => kills > 0)).toBe(true);
  expect(rehearsed.phases.map(({ name }) => name)).toEqual(
    'shadow mirror shadow mirror reverse mirror reverse native'.split(' '),
  );
  expect(rehearsed.phases.every(({ reads, changes }) => reads > 0 && changes > 0)).toBe(true);
  expect(describeRehearsal(rehearsed)).toMatch(/^native +\d/m);
});
