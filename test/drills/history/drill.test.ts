import { expect, test } from '@jest/globals';
import { describeResults, drillHistories } from '../../../scripts/drills/history/drill.ts';
import { faults } from '../../../scripts/drills/history/faults.ts';

const few = ['bridge killed', 'org set --username-comparison, connections to Redis cut'];

test('what clients see is linearizable while processes are killed and connections are cut', async () => {
  const chosen = faults.filter(({ name }) => few.includes(name));
  const results = await drillHistories(chosen, { rounds: few.length, seed: 1, say: () => {} });
  expect(results.flatMap(({ violations }) => violations.map(({ message }) => message))).toEqual([]);
  expect(results.map(({ fault, lostWrites }) => [fault.name, lostWrites])).toEqual(
    few.map((name) => [name, 0]),
  );
  expect(results.every(({ answered }) => answered > 100)).toBe(true);
  expect(describeResults(results)).toMatch(/^bridge killed +1 +/m);
});
