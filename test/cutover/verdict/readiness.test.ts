import { describe, expect, test } from '@jest/globals';
import type { Mode } from '../../../src/cutover/modes.ts';
import type { Instance } from '../../../src/cutover/switch/registry.ts';
import type { Evidence } from '../../../src/cutover/verdict/evidence.ts';
import { blocksEvenForced, judge } from '../../../src/cutover/verdict/readiness.ts';

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
  hasUnsavedGaps: false,
};
const compared: Evidence['comparisons'] = {
  compared: 500,
  different: 0,
  unreadable: 0,
  differingUsers: 0,
  unmappedKeys: 0,
  unusableKeys: 0,
  refusedKeys: 0,
  refusedKeysInSource: 0,
  unsettled: 0,
  unadopted: 0,
  failedAdoptions: 0,
  lostNames: 0,
  lastGapAt: 0,
};
const nothing = {
  entries: 0,
  oldestAt: undefined,
  setAside: 0,
  pausedBecause: undefined,
  organizations: [],
};

function verdict(
  mode: Mode,
  to: Mode,
  given: {
    state?: Partial<Evidence['state']>;
    comparisons?: Partial<Evidence['comparisons']>;
    replay?: Partial<Evidence['replay']>;
    unregistered?: string[];
    pictures?: number;
  } = {},
) {
  const state: Evidence['state'] = {
    mode,
    epoch: 1,
    since: 1000,
    isStored: true,
    isLost: false,
    now: 5000,
    by: 'default',
    hasFailedOver: false,
    hasLostSwitch: false,
    instances: [instance],
    history: [],
    ...given.state,
  };
  const found = judge(
    {
      state,
      organizations: [],
      comparisons: { ...compared, ...given.comparisons },
      replay: { ...nothing, ...given.replay },
      unregistered: given.unregistered ?? [],
      legacyPictures: given.pictures === undefined ? undefined : { count: given.pictures, at: 1 },
    },
    to,
  );
  return {
    ready: found.ready,
    reasons: found.reasons.map(({ code }) => code),
    warnings: found.warnings.map(({ code }) => code),
    texts: found.reasons.map(({ reason }) => reason),
    remedies: found.reasons.map(({ remedy }) => remedy),
    isUnforceable: found.reasons.some(blocksEvenForced),
  };
}

describe('once Redis has lost the last switch', () => {
  test.each<Mode>(['shadow', 'mirror', 'reverse', 'native'])('%s can be set again', (mode) => {
    const state = { hasLostSwitch: true, instances: [{ ...instance, replay: true }] };
    expect(verdict(mode, mode, { state })).toMatchObject({
      ready: true,
      warnings: expect.arrayContaining(['switch-lost']),
    });
    expect(verdict(mode, mode)).toMatchObject({ ready: false, isUnforceable: true });
  });

  test('to set reverse again replays what waits, which is warned of', () => {
    const state = { hasLostSwitch: true, instances: [{ ...instance, replay: true }] };
    expect(verdict('reverse', 'reverse', { state, replay: { entries: 200 } })).toMatchObject({
      ready: true,
      warnings: ['switch-lost', 'backlog'],
    });
  });

  test.each<Mode>(['shadow', 'mirror', 'native'])(
    'what waits prevents %s from being set again, where clients would find it undone',
    (mode) => {
      expect(verdict(mode, mode, { state: { hasLostSwitch: true }, replay: { entries: 1 } })).toMatchObject({
        reasons: ['backlog'],
        isUnforceable: false,
        remedies: [expect.stringContaining('--force discards them; to replay them, set reverse')],
      });
    },
  );

  test('whatever waits to be replayed prevents another mode, since the legacy service may have newer values', () => {
    const [state, replay] = [{ hasLostSwitch: true }, { entries: 1, oldestAt: 4000 }];
    for (const to of ['mirror', 'native'] as const)
      expect(verdict('reverse', to, { state, replay })).toMatchObject({
        reasons: ['backlog'],
        isUnforceable: false,
        remedies: [expect.stringContaining('--force discards them')],
      });
    expect(verdict('mirror', 'reverse', { state, replay }).remedies).toContainEqual(
      expect.stringContaining('--force replays them; to discard them, set mirror with --force first'),
    );
  });

  test('what waits to be replayed may be discarded, since the legacy service may have newer values', () => {
    const replay = { entries: 200 };
    expect(verdict('reverse', 'mirror', { state: { hasLostSwitch: true }, replay })).toMatchObject({
      reasons: ['backlog'],
      isUnforceable: false,
    });
    expect(verdict('reverse', 'mirror', { replay })).toMatchObject({
      reasons: ['backlog-would-be-lost'],
      isUnforceable: true,
    });
  });
});

describe('the step to mirror', () => {
  test('is safe once every key that the legacy service accepts is known here', () => {
    expect(verdict('shadow', 'mirror')).toMatchObject({ ready: true, warnings: [] });
    expect(verdict('shadow', 'mirror', { comparisons: { unmappedKeys: 1 } })).toMatchObject({
      ready: false,
      reasons: ['unmapped-keys'],
      isUnforceable: false,
    });
    expect(verdict('shadow', 'mirror', { comparisons: { unusableKeys: 1 } })).toMatchObject({
      ready: false,
      reasons: ['unusable-keys'],
      remedies: [expect.stringContaining('admin key revoke')],
    });
  });

  test('is safe from reverse with keys that only the legacy service accepts: they work again there', () => {
    expect(verdict('reverse', 'mirror', { comparisons: { unmappedKeys: 1 } })).toMatchObject({ ready: true });
  });

  test('has a warning if hardly anything was compared', () => {
    expect(verdict('shadow', 'mirror', { comparisons: { compared: 99 } })).toMatchObject({
      ready: true,
      warnings: ['few-comparisons'],
    });
  });

  test('has a warning if responses of the legacy service could not be read', () => {
    expect(verdict('shadow', 'mirror', { comparisons: { unreadable: 5 } })).toMatchObject({
      ready: true,
      warnings: ['unreadable-responses'],
    });
    expect(verdict('mirror', 'shadow', { comparisons: { unreadable: 5 } }).warnings).toEqual([]);
  });

  test('waits for an instance that is silent or does not know the legacy service, even with --force', () => {
    const silent = { ...instance, silentMs: 60_000 };
    expect(verdict('shadow', 'mirror', { state: { instances: [silent] } })).toMatchObject({
      reasons: ['instance-silent'],
      isUnforceable: true,
    });
    const ignorant = { ...instance, legacy: false };
    expect(verdict('shadow', 'mirror', { state: { instances: [ignorant] } })).toMatchObject({
      reasons: ['instance-without-legacy'],
      isUnforceable: true,
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
    const state = { ...verified, hasFailedOver: true };
    expect(verdict('mirror', 'native', { state }).reasons).toContain('gap');
  });

  test('needs another verify once a master has joined the cluster, which looks like a failover', () => {
    const state = { ...verified, hasFailedOver: true };
    expect(verdict('mirror', 'native', { state }).texts).toContain(
      'since the last verify, Redis has failed over, was restarted or has other masters, and may lack the last changes',
    );
  });

  test('waits for changes that may not have reached Redis', () => {
    const comparisons = { unsettled: 1 };
    expect(verdict('mirror', 'native', { state: verified, comparisons }).reasons).toContain('unsettled');
    expect(
      verdict('mirror', 'native', { state: verified, comparisons: { lastGapAt: 3000 } }).reasons,
    ).toContain('gap');
  });

  test('waits for changes that could not be adopted, and warns of lost names', () => {
    const comparisons = { failedAdoptions: 1, lostNames: 1 };
    expect(verdict('mirror', 'native', { state: verified, comparisons })).toMatchObject({
      reasons: ['not-the-next-mode', 'failed-adoptions'],
      warnings: ['lost-names'],
    });
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

describe('the step to reverse', () => {
  const state = { verifiedAt: 2000, instances: [{ ...instance, replay: true }] };

  test('has a warning of refused keys that the source has, and waits for others', () => {
    const comparisons = { refusedKeys: 2, refusedKeysInSource: 2 };
    expect(verdict('mirror', 'reverse', { state, comparisons })).toMatchObject({
      ready: true,
      warnings: ['refused-keys'],
    });
    const another = { refusedKeys: 3, refusedKeysInSource: 2 };
    expect(verdict('mirror', 'reverse', { state, comparisons: another })).toMatchObject({
      reasons: ['refused-keys'],
      warnings: ['refused-keys'],
    });
  });

  test('is safe if everything agrees and every instance can replay', () => {
    expect(verdict('mirror', 'reverse', { state })).toMatchObject({ ready: true, warnings: [] });
    expect(verdict('mirror', 'reverse', { state: { verifiedAt: 2000 } })).toMatchObject({
      reasons: ['instance-cannot-replay'],
      isUnforceable: true,
    });
  });
});

test('an instance that cannot replay has no secret yet, or one of which its log says what is wrong', () => {
  expect(verdict('mirror', 'reverse', { state: { verifiedAt: 2000 } }).remedies).toEqual([
    'restart it with the same REPLAY_SECRET as every other instance (if it has one, its log says what is wrong with it)',
  ]);
});

describe('the steps out of reverse', () => {
  test('are safe while the last few changes are being replayed', () => {
    const replay = { entries: 100, oldestAt: 4000 };
    expect(verdict('reverse', 'native', { replay })).toMatchObject({ ready: true, warnings: [] });
    expect(verdict('reverse', 'mirror', { replay })).toMatchObject({ ready: true });
  });

  test('wait until the backlog has been replayed', () => {
    for (const replay of [
      { entries: 101, oldestAt: 4000 },
      { entries: 1, oldestAt: -6000 },
      { entries: 1, oldestAt: 4000, pausedBecause: 'the legacy service cannot be reached' },
    ]) {
      expect(verdict('reverse', 'native', { replay })).toMatchObject({
        reasons: ['backlog'],
        isUnforceable: false,
      });
      expect(verdict('reverse', 'mirror', { replay })).toMatchObject({
        reasons: ['backlog-would-be-lost'],
        isUnforceable: true,
      });
    }
  });

  test('need a bridge that replays: none responds', () => {
    const replay = { entries: 1, oldestAt: -6000 };
    const migration = { ...instance, kind: 'migrate' as const };
    for (const instances of [[], [{ ...instance, silentMs: 60_000 }], [migration]]) {
      for (const to of ['mirror', 'native'] as const) {
        expect(verdict('reverse', to, { replay, state: { instances } }).remedies).toContainEqual(
          expect.stringContaining('start a bridge: no instance that could replay them responds'),
        );
      }
    }
    expect(verdict('reverse', 'native', { replay }).remedies.join()).not.toContain('start a bridge');
  });

  test('back to mirror waits for a decision about what the legacy service has refused', () => {
    const replay = { setAside: 1 };
    expect(verdict('reverse', 'mirror', { replay })).toMatchObject({ reasons: ['set-aside'] });
    expect(verdict('reverse', 'native', { replay })).toMatchObject({ ready: true, warnings: ['set-aside'] });
  });
});

test('leaving reverse for good has a warning if Redis may have lost changes that were replayed', () => {
  const state = { hasFailedOver: true };
  expect(verdict('reverse', 'native', { state })).toMatchObject({ ready: true, warnings: ['failed-over'] });
  expect(verdict('reverse', 'mirror', { state })).toMatchObject({ ready: true, warnings: [] });
});

test('leaving reverse for good has a warning if only the legacy service may have an earlier change', () => {
  const comparisons = { unsettled: 1 };
  expect(verdict('reverse', 'native', { comparisons })).toMatchObject({
    ready: true,
    warnings: ['unsettled'],
  });
  expect(verdict('reverse', 'mirror', { comparisons })).toMatchObject({ ready: true, warnings: [] });
});

test('pictures that the legacy service shows are a warning if Redis becomes or stays the authority', () => {
  const state = { verifiedAt: 2000, instances: [{ ...instance, replay: true }] };
  for (const [from, to] of [
    ['mirror', 'reverse'],
    ['reverse', 'native'],
  ] as const) {
    expect(verdict(from, to, { state, pictures: 3 })).toMatchObject({
      ready: true,
      warnings: ['legacy-pictures'],
    });
    expect(verdict(from, to, { state, pictures: 0 }).warnings).toEqual([]);
  }
  expect(verdict('reverse', 'mirror', { state, pictures: 3 }).warnings).toEqual([]);
});

test('native can be set if no mode was ever set', () => {
  expect(verdict('native', 'native', { state: { isStored: false } })).toMatchObject({ ready: true });
  expect(verdict('native', 'shadow', { state: { isStored: false } })).toMatchObject({ reasons: ['no-mode'] });
  expect(verdict('native', 'native')).toMatchObject({ reasons: ['impossible'], isUnforceable: true });
});

test('where Redis has lost the mode, only force says which side has the authority now', () => {
  const state = { isStored: false, isLost: true };
  for (const to of ['shadow', 'native'] as const)
    expect(verdict('native', to, { state })).toEqual(
      expect.objectContaining({ reasons: ['mode-lost'], isUnforceable: false }),
    );
  for (const to of ['mirror', 'reverse'] as const)
    expect(verdict('native', to, { state })).toMatchObject({ isUnforceable: true });
});

test('a migrate apply under way holds up every switch, even with --force', () => {
  const state = { instances: [instance, { ...instance, id: 'tool-1', kind: 'migrate' as const }] };
  for (const to of ['shadow', 'native'] as const) {
    const { ready, reasons, isUnforceable } = verdict('mirror', to, { state });
    expect({ ready, isUnforceable }).toEqual({ ready: false, isUnforceable: true });
    expect(reasons).toContain('migration-running');
  }
});

test('an organization that the registry has lost holds up every switch, even with --force', () => {
  const unregistered = ['a', 'b', 'c', 'd', 'e', 'f'];
  for (const [from, to] of [
    ['shadow', 'mirror'],
    ['mirror', 'shadow'],
    ['reverse', 'mirror'],
    ['reverse', 'native'],
  ] as const) {
    const { ready, reasons, remedies, isUnforceable } = verdict(from, to, { unregistered });
    expect({ ready, reasons, isUnforceable }).toEqual({
      ready: false,
      reasons: ['organizations-unregistered'],
      isUnforceable: true,
    });
    expect(remedies).toEqual(['run profile-bridge admin fsck --repair']);
  }
});
