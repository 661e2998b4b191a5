import { expect, test } from '@jest/globals';
import { describeToolResults, drillTools } from '../../../scripts/drills/tools/drill.ts';

const tools = [
  'org set',
  'fsck --repair',
  'migrate apply',
  'migrate verify',
  'migrate export',
  'upgrade',
  'cutover set',
];
const faults = ['killed', 'reply lost', 'second run beside it'];

test('an interrupted tool loses nothing, and finishes when it is run again', async () => {
  const say = () => {};
  const [results, stalled] = await Promise.all([
    drillTools({ fault: /killed|lost|second/, step: 15, say }),
    drillTools({ tool: /org set/, fault: /stalled/, step: 5, say }),
  ]);
  expect([...results, ...stalled].flatMap(({ violations }) => violations)).toEqual([]);
  expect(results.map(({ tool, fault }) => [tool, fault])).toEqual(
    tools.flatMap((tool) => faults.map((fault) => [tool, fault])),
  );
  expect([...results, ...stalled].every(({ injected }) => injected > 0)).toBe(true);
  expect(describeToolResults(stalled)).toMatch(/^org set +stalled beyond its lease +/m);
});
