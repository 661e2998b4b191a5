import { expect, test } from '@jest/globals';
import { drillCutover, type CutoverDrillOptions } from '../../../scripts/drills/cutover/drill.ts';
import { describeCutoverResults } from '../../../scripts/drills/cutover/results.ts';
import { undisturbed } from './undisturbed.ts';

const drill = async (options: Pick<CutoverDrillOptions, 'switch' | 'step' | 'stop'>) =>
  await drillCutover({ commands: 1, say: () => {}, ...options });

test('a switch is made or withdrawn, and no request fails, whatever is stopped at one of its steps', async () => {
  const drills = async () =>
    (
      await Promise.all([
        drill({ switch: /mirror -> native/, stop: /nothing|tool killed/, step: /move reads/ }),
        drill({ switch: /mirror -> reverse/, stop: /instance killed/, step: /move reads/ }),
        drill({ switch: /reverse -> mirror/, stop: /tool killed/, step: /queue is empty/ }),
      ])
    ).flat();
  const results = await undisturbed(
    drills,
    (all) => all.length < 4 || all.some(({ violations }) => violations.length > 0),
  );
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
