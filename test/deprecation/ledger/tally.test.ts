import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  createTally,
  tallyLimits,
  moreKeys,
  unattributedKey,
  type Counted,
} from '../../../src/deprecation/ledger/tally.ts';

const NOW = Date.parse('2027-03-01T23:59:59.990Z');
const total = ({ organizations }: Counted) =>
  [...organizations.values()]
    .flatMap(({ keys }) => [...keys.values()])
    .flatMap(({ uses }) => [...uses.values()])
    .flatMap(({ days }) => [...days.values()].flat())
    .reduce((sum, calls) => sum + calls, 0);

describe('the tally', () => {
  test('counts every call once, for any operations, keys and times', () => {
    const calls = fc.record({
      organizationId: fc.option(fc.constantFrom('acme', 'other', '__proto__', ''), { nil: undefined }),
      keyId: fc.option(fc.constantFrom('k_1', 'k_2', 'constructor'), { nil: undefined }),
      operation: fc.constantFrom('getProfile', 'putProfile'),
      status: fc.constantFrom(0, 200, 204, 404, 503, 999),
      userAgent: fc.option(fc.string(), { nil: undefined }),
      at: fc.integer({ min: NOW - 86_400_000, max: NOW + 86_400_000 }),
    });
    fc.assert(
      fc.property(fc.array(calls, { maxLength: 200 }), (list) => {
        const tally = createTally(() => false);
        for (const { at, ...call } of list) tally.record(call, at);
        expect(tally.calls()).toBe(list.length);
        const counted = tally.take();
        expect(counted.calls).toBe(list.length);
        expect(total(counted)).toBe(list.length);
        expect(tally.calls()).toBe(0);
      }),
    );
  });

  test('counts a limited number of claimed organizations separately, and the rest together', () => {
    const tally = createTally((organizationId) => organizationId === 'known');
    for (let i = 0; i < 3 * tallyLimits.unproven; i += 1) {
      tally.record({ organizationId: `junk-${i}`, operation: 'getProfile', status: 401 }, NOW);
    }
    tally.record({ organizationId: 'known', operation: 'getProfile', status: 401 }, NOW);
    tally.record({ organizationId: 'paying', keyId: 'k_1', operation: 'getProfile', status: 200 }, NOW);
    tally.record({ organizationId: 'x'.repeat(10_000), operation: 'getProfile', status: 401 }, NOW);
    const counted = tally.take();
    expect(counted.organizations.size).toBeLessThanOrEqual(tallyLimits.unproven + 3);
    expect(counted.organizations.get('known')?.keys.has(unattributedKey)).toBe(true);
    expect(counted.organizations.get('paying')?.isProven).toBe(true);
    expect(total(counted)).toBe(3 * tallyLimits.unproven + 3);
  });

  test('counts a limited number of keys separately, and the rest together', () => {
    const tally = createTally(() => false);
    for (let i = 0; i <= tallyLimits.uses; i += 1) {
      tally.record({ organizationId: 'acme', keyId: `k_${i}`, operation: 'getProfile', status: 200 }, NOW);
    }
    const counted = tally.take();
    expect(counted.organizations.get('acme')?.keys.size).toBe(tallyLimits.uses + 1);
    expect(counted.organizations.get('acme')?.keys.has(moreKeys)).toBe(true);
    expect(total(counted)).toBe(tallyLimits.uses + 1);
  });

  test('remembers a limited number of user agents, each truncated', () => {
    const tally = createTally(() => false);
    for (let i = 0; i < 3 * tallyLimits.agents; i += 1) {
      const userAgent = `${i}`.padEnd(1000, 'x');
      tally.record(
        { organizationId: 'acme', keyId: 'k_1', operation: 'getProfile', status: 200, userAgent },
        NOW,
      );
    }
    const agents =
      tally.take().organizations.get('acme')?.keys.get('k_1')?.agents ?? new Map<string, number>();
    expect(agents.size).toBe(tallyLimits.agents);
    expect(Math.max(...[...agents.keys()].map((agent) => agent.length))).toBe(tallyLimits.agentLength);
  });
});
