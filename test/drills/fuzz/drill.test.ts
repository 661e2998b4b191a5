import { expect, test } from '@jest/globals';
import { drillFuzz } from '../../../scripts/drills/fuzz/drill.ts';
import { randomAttack } from '../../../scripts/drills/fuzz/random-attacks.ts';

const credentials = { organizationId: 'fuzzed', playerKey: 'player', adminKey: 'admin' };

test('an attack can be repeated by its number and seed', () => {
  expect(randomAttack(1, 7, credentials)).toEqual(randomAttack(1, 7, credentials));
  expect(randomAttack(1, 7, credentials)).not.toEqual(randomAttack(2, 7, credentials));
});

test('attacks over raw sockets neither break the bridge nor leave anything behind in it', async () => {
  const { violations, answers } = await drillFuzz({ attacks: 300, seed: 1, say: () => {} });
  expect(violations).toEqual([]);
  expect([...answers.keys()]).toEqual(expect.arrayContaining([200, 400, 404, 413, 415, 422, 431]));
});
