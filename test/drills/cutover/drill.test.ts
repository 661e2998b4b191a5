import { expect, test } from '@jest/globals';
import { drillCutover, type CutoverDrillOptions } from '../../../scripts/drills/cutover/drill.ts';
import { describeCutoverResults, type CutoverResult } from '../../../scripts/drills/cutover/results.ts';
import { undisturbed } from '../../support/run/undisturbed.ts';

/** Three times at most, until it has this many results: on a slow machine a switch may be withdrawn before its step. */
async function drill(
  expected: number,
  options: Pick<CutoverDrillOptions, 'switch' | 'step' | 'stop'>,
): Promise<CutoverResult[]> {
  for (let attempt = 1; ; attempt++) {
    const results = await drillCutover({ commands: 1, say: () => {}, ...options });
    if (results.length === expected || attempt === 3) return results;
  }
}

test('a switch is made or withdrawn, and no request fails, whatever is stopped at one of its steps', async () => {
  const drills = async () =>
    (
      await Promise.all([
        drill(2, { switch: /mirror -> native/, stop: /nothing|tool killed/, step: /move reads/ }),
        drill(1, { switch: /mirror -> reverse/, stop: /instance killed/, step: /move reads/ }),
        drill(1, { switch: /reverse -> mirror/, stop: /tool killed/, step: /queue is empty/ }),
      ])
    ).flat();
  const results = await undisturbed(drills, (all) => all.some(({ violations }) => violations.length > 0));
  expect(results.flatMap(({ violations }) => violations)).toEqual([]);
  expect(results.map(({ name, stopped, isSwitched }) => [name, stopped, isSwitched])).toEqual([
    ['mirror -> native', 'nothing', true],
    ['mirror -> native', 'tool killed', false],
    // It is withdrawn if the machine is too slow to tell in time that the instance has ended.
    ['mirror -> reverse', 'instance killed', expect.any(Boolean)],
    ['reverse -> mirror', 'tool killed', false],
  ]);
  expect(describeCutoverResults(results)).toMatch(/^mirror -> native +move reads +tool killed +1 +0 /m);
});
