import { expect, test } from '@jest/globals';
import { drillCutover, type CutoverDrillOptions } from '../../../scripts/drills/cutover/drill.ts';
import { describeCutoverResults } from '../../../scripts/drills/cutover/results.ts';

const drill = async (options: Pick<CutoverDrillOptions, 'steps' | 'stops'>) =>
  await drillCutover({ switches: /mirror -> native/, commands: 1, say: () => {}, ...options });

test('a switch is made or withdrawn, and no request fails, whatever is stopped at one of its steps', async () => {
  const results = (
    await Promise.all([
      drill({ stops: /nothing|tool killed/, steps: /move reads/ }),
      drill({ stops: /instance killed/, steps: /raise/ }),
    ])
  ).flat();
  expect(results.flatMap(({ violations }) => violations)).toEqual([]);
  expect(results.map(({ stopped, isSwitched }) => [stopped, isSwitched])).toEqual([
    ['nothing', true],
    ['tool killed', false],
    ['instance killed', true],
  ]);
  expect(describeCutoverResults(results)).toMatch(/^mirror -> native +move reads +tool killed +1 +0 /m);
});
