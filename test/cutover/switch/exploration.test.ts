import { describe, expect, test } from '@jest/globals';
import { exploreSwitches, type Scenario } from './exploration.ts';

const faultless = { writes: 2, switches: 1, faults: 0, pauses: 0 };

describe('every interleaving of two instances, the tool, the scripts and time', () => {
  test.each<[string, Scenario]>([
    ['to reverse, with a pause', { ...faultless, from: 'mirror', pauses: 1 }],
    ['to mirror, with a pause', { ...faultless, from: 'reverse', pauses: 1 }],
    ['to reverse, with a kill or a lost reply', { ...faultless, from: 'mirror', writes: 1, faults: 1 }],
    ['to mirror, with a kill or a lost reply', { ...faultless, from: 'reverse', writes: 1, faults: 1 }],
    ['to reverse, and Redis loses its data', { ...faultless, from: 'mirror', writes: 1, losses: 1 }],
    ['to mirror, and Redis loses its data', { ...faultless, from: 'reverse', writes: 1, losses: 1 }],
    ['two switches in a row, or a second attempt', { ...faultless, from: 'mirror', writes: 1, switches: 2 }],
  ])(
    '%s: one authority, no accepted change lost, no stale read, no change waits forever',
    (_name, scenario) => {
      const { states, violation } = exploreSwitches(scenario);
      expect(violation).toBeUndefined();
      expect(states).toBeGreaterThan(100);
    },
  );

  test('let an instance that was wrongly assumed to have ended change nothing in Redis', () => {
    const scenario: Scenario = { ...faultless, from: 'reverse', pauses: 1, mayAssume: true };
    expect(exploreSwitches(scenario).violation).toBeUndefined();
  });
});

describe('a mistake in the protocol is found:', () => {
  test.each<[string, NonNullable<Scenario['mistake']>, Scenario, string]>([
    [
      'an instance acknowledges before its changes have ended',
      'acknowledges-before-changes-end',
      { ...faultless, from: 'mirror' },
      'older than an accepted change',
    ],
    [
      'changes are admitted before all reads have moved',
      'admits-before-reads-moved',
      { ...faultless, from: 'mirror' },
      'older than an accepted change',
    ],
    [
      'a switch is withdrawn without asking the instances',
      'withdraws-without-confirmation',
      { ...faultless, from: 'mirror' },
      'older than an accepted change',
    ],
    [
      'Redis accepts changes of an earlier epoch',
      'does-not-fence',
      { ...faultless, from: 'reverse', pauses: 1, mayAssume: true },
      'an accepted change is lost',
    ],
    [
      'changes that still wait for their replay are ignored',
      'ignores-queue',
      { ...faultless, from: 'reverse' },
      'older than an accepted change',
    ],
    [
      'a lost mode is taken for native',
      'takes-lost-for-native',
      { ...faultless, from: 'reverse', losses: 1 },
      'older than an accepted change',
    ],
  ])('%s', (_which, mistake, scenario, rule) => {
    const { violation } = exploreSwitches({ ...scenario, mistake });
    expect(violation?.rule).toContain(rule);
    expect(violation?.steps.length).toBeGreaterThan(3);
  });
});
