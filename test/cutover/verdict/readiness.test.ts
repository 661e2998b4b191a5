import { describe, expect, test } from '@jest/globals';
import type { Mode } from '../../../src/cutover/modes.ts';
import type { CutoverState, Instance } from '../../../src/cutover/switch/registry.ts';
import { isInsuperable, judge, type ComparisonTotals } from '../../../src/cutover/verdict/readiness.ts';

const instance: Instance = {
  id: 'web-1',
  kind: 'bridge',
  legacy: true,
  replay: false,
  host: 'web',
  pid: 1,
  boot: 'b',
  namespace: 'n',
  started: '1',
  silentMs: 100,
  epoch: 1,
  acknowledged: undefined,
};
const compared: ComparisonTotals = {
  compared: 500,
  different: 0,
  differingUsers: 0,
  unmappedKeys: 0,
  refusedKeys: 0,
  unsettled: 0,
  lastGapAt: 0,
};

function verdict(
  mode: Mode,
  to: Mode,
  given: { state?: Partial<CutoverState>; comparisons?: Partial<ComparisonTotals> } = {},
) {
  const state: CutoverState = {
    mode,
    epoch: 1,
    since: 1000,
    isStored: true,
    now: 5000,
    by: 'default',
    instances: [instance],
    history: [],
    ...given.state,
  };
  const found = judge({ state, comparisons: { ...compared, ...given.comparisons } }, to);
  return {
    ready: found.ready,
    reasons: found.reasons.map(({ code }) => code),
    warnings: found.warnings.map(({ code }) => code),
    insuperable: found.reasons.some(isInsuperable),
  };
}

describe('the step to mirror', () => {
  test('is safe once every key that legacy accepts is known here', () => {
    expect(verdict('shadow', 'mirror')).toMatchObject({ ready: true, warnings: [] });
    expect(verdict('shadow', 'mirror', { comparisons: { unmappedKeys: 1 } })).toMatchObject({
      ready: false,
      reasons: ['unmapped-keys'],
      insuperable: false,
    });
  });

  test('comes with a warning where hardly anything was compared', () => {
    expect(verdict('shadow', 'mirror', { comparisons: { compared: 99 } })).toMatchObject({
      ready: true,
      warnings: ['few-comparisons'],
    });
  });

  test('waits for an instance that is silent or does not know the legacy service, whatever is forced', () => {
    const silent = { ...instance, silentMs: 60_000 };
    expect(verdict('shadow', 'mirror', { state: { instances: [silent] } })).toMatchObject({
      reasons: ['instance-silent'],
      insuperable: true,
    });
    const ignorant = { ...instance, legacy: false };
    expect(verdict('shadow', 'mirror', { state: { instances: [ignorant] } })).toMatchObject({
      reasons: ['instance-without-legacy'],
      insuperable: true,
    });
  });
});

describe('a step that takes authority over', () => {
  const verified = { verifiedAt: 2000 };

  test('needs a verify of everything whose snapshot is newer than the mode', () => {
    expect(verdict('mirror', 'native').reasons).toEqual(['not-the-next-mode', 'not-verified']);
    expect(verdict('mirror', 'native', { state: { verifiedAt: 1000 } }).reasons).toContain('not-verified');
    expect(verdict('mirror', 'native', { state: verified }).reasons).toEqual(['not-the-next-mode']);
  });

  test('needs a verify that is newer than every gap', () => {
    const gap = { at: 3000, reason: 'web-1 ended without stopping' };
    expect(verdict('mirror', 'native', { state: { ...verified, gap } }).reasons).toContain('gap');
    expect(verdict('mirror', 'native', { state: { verifiedAt: 3001, gap } }).reasons).not.toContain('gap');
  });

  test('waits for changes that may not have reached Redis', () => {
    const comparisons = { unsettled: 1 };
    expect(verdict('mirror', 'native', { state: verified, comparisons }).reasons).toContain('unsettled');
    expect(
      verdict('mirror', 'native', { state: verified, comparisons: { lastGapAt: 3000 } }).reasons,
    ).toContain('gap');
  });

  test('needs users and keys on which both sides agree', () => {
    const disputed = { differingUsers: 1, unmappedKeys: 1, refusedKeys: 1 };
    expect(verdict('mirror', 'native', { state: verified, comparisons: disputed }).reasons).toEqual([
      'not-the-next-mode',
      'unmapped-keys',
      'refused-keys',
      'users-differ',
    ]);
  });
});

test('where no mode was ever set, native can be set for good', () => {
  expect(verdict('native', 'native', { state: { isStored: false } })).toMatchObject({ ready: true });
  expect(verdict('native', 'native')).toMatchObject({ reasons: ['impossible'], insuperable: true });
});

test('a migrate apply under way holds up every switch, even with --force', () => {
  const state = { instances: [instance, { ...instance, id: 'tool-1', kind: 'migrate' as const }] };
  for (const to of ['shadow', 'native'] as const) {
    const { ready, reasons, insuperable } = verdict('mirror', to, { state });
    expect({ ready, insuperable }).toEqual({ ready: false, insuperable: true });
    expect(reasons).toContain('migration-running');
  }
});
