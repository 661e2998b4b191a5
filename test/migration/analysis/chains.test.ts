import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { orderRenames } from '../../../src/migration/analysis/chains.ts';
import type { Rename } from '../../../src/migration/analysis/names.ts';

/** Users hold names 0 to count - 1, and each takes the name that the permutation gives, or a new or no name. */
const renames = fc
  .array(fc.record({ keeps: fc.boolean(), to: fc.constantFrom('same place', 'fresh', 'none') }), {
    maxLength: 12,
  })
  .chain((users) =>
    fc
      .shuffledSubarray(
        users.map((_, at) => at),
        { minLength: users.length },
      )
      .map((places) =>
        users.flatMap(({ keeps, to }, at): Rename[] => {
          const name = to === 'none' ? '' : to === 'fresh' ? `new ${at}` : `name ${places[at] ?? 0}`;
          const from = `name ${at}`;
          return keeps || name === from ? [] : [{ organizationId: 'acme', userId: `u${at}`, from, to: name }];
        }),
      ),
  );

test('every rename of a chain is made once, after its new name has become free', () => {
  fc.assert(
    fc.property(renames, (all) => {
      const chains = orderRenames(all, (name) => name.toLowerCase());
      expect(
        chains
          .flatMap(({ steps }) => steps)
          .map(({ userId }) => userId)
          .toSorted(),
      ).toEqual(all.map(({ userId }) => userId).toSorted());
      const held = new Set(all.map(({ from }) => from));
      for (const { steps, isCycle } of chains) {
        if (isCycle) held.delete(steps.at(-1)?.from ?? '');
        for (const { from, to } of steps) {
          expect(held.has(to)).toBe(false);
          held.delete(from);
          if (to !== '') held.add(to);
        }
      }
    }),
  );
});
