import { expect, test } from '@jest/globals';
import { rehearse } from '../../../scripts/rehearsal/rehearse.ts';
import { describeRehearsal } from '../../../scripts/rehearsal/report.ts';

test('a whole cut-over while bridges are killed loses nothing, and no client notices', async () => {
  const events: string[] = [];
  const rehearsed = await rehearse({
    program: ['--import', 'tsx', 'scripts/profile-bridge.ts'],
    users: 200,
    rate: 60,
    seconds: 2,
    pause: [20, 30],
    kills: 0,
    seed: 1,
    say: (_, line) => void events.push(line),
  });
  expect({ violations: rehearsed.violations, events }).toEqual({ violations: [], events });
  expect(rehearsed.phases.flatMap(({ kills }) => kills).some((kills) => kills > 0)).toBe(true);
  expect(rehearsed.phases.map(({ name }) => name)).toEqual(
    'shadow mirror shadow mirror reverse mirror reverse native'.split(' '),
  );
  expect(rehearsed.phases.every(({ reads, changes }) => reads > 0 && changes > 0)).toBe(true);
  expect(describeRehearsal(rehearsed)).toMatch(/^native +\d/m);
});
