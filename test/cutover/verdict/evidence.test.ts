import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readDoubts } from '../../../src/cutover/compare/summary.ts';
import { findEvidence, gatherEvidence } from '../../../src/cutover/verdict/evidence.ts';
import { judge, judgeDoubts, type Finding } from '../../../src/cutover/verdict/readiness.ts';
import { recordVerified } from '../../../src/cutover/verdict/verified.ts';
import { storeTime } from '../../../src/redis/connection/client.ts';
import { organizationsKey, unsettledKey } from '../../../src/redis/keys.ts';
import { runTool } from '../../support/tools/admin.ts';
import { environmentFor, freshPrefix } from '../../support/redis.ts';
import { interceptCalls } from '../../support/store.ts';
import { startLegacyBridge, type LegacyBridge } from '../../support/legacy/bridge.ts';
import { until } from '../../support/until.ts';

const replaySecret = 'a secret of at least thirty-two characters';

let here: LegacyBridge;
beforeAll(async () => {
  here = await startLegacyBridge({ replaySecret }, {}, 'mirror');
});
afterAll(() => here.close());

const reasonsNow = async (): Promise<Finding[]> => {
  const { store, config } = here.bridge;
  return judge(await gatherEvidence(store, config.keyPrefix), 'reverse').reasons;
};
const doubtsNow = async (): Promise<Finding[]> => {
  const { store, config } = here.bridge;
  const { state } = await gatherEvidence(store, config.keyPrefix);
  return judgeDoubts(state, await readDoubts(store, config.keyPrefix));
};
const codes = (findings: Finding[]): string[] => findings.map(({ code }) => code);
const marks = () => here.bridge.store.hgetall(unsettledKey(here.organization.base));
const verify = async () =>
  await recordVerified(here.bridge.store, here.bridge.config.keyPrefix, {
    snapshotAt: await storeTime(here.bridge.store),
    replicationIds: '',
    hasConflicts: false,
  });

const put = async (apiKey: string, username: string): Promise<void> => {
  await here.send(apiKey, 'PUT', '/api/profile/', { body: JSON.stringify({ username }) });
};

test('no organization is asked while no mode was ever set', async () => {
  const commands: string[] = [];
  const store = interceptCalls(here.bridge.store, (make, command) => {
    commands.push(command);
    return make();
  });
  const prefix = freshPrefix();
  await store.sadd(organizationsKey(prefix), 'acme');
  expect(await findEvidence(store, prefix)).toBeUndefined();
  expect(commands).not.toContain('xlen');
});

test('a read before a change has been adopted is not a difference', async () => {
  const player = await here.player('grace');
  here.legacy.behaviour.delayMs = 200;
  await put(player, 'Grace');
  await here.send(player, 'GET', '/api/profile/');
  here.legacy.behaviour.delayMs = 0;
  const { store, config } = here.bridge;
  const compared = async () => (await gatherEvidence(store, config.keyPrefix)).comparisons;
  await until(async () => (await compared()).compared > 0);
  expect(await compared()).toMatchObject({ different: 0, differingUsers: 0 });
});

test('a change is in doubt once it should have been adopted, or once changes have stopped', async () => {
  const player = await here.player('ada');
  await verify();
  const { behaviour } = here.legacy;
  let open = (): void => {};
  behaviour.gate = new Promise<void>((resolve) => (open = resolve));
  const putting = put(player, 'Ada');
  await until(async () => Object.keys(await marks()).length === 1);
  expect(codes(await reasonsNow())).toEqual([]);
  expect(codes(await doubtsNow())).toEqual(['unsettled']);

  // As if it had been forwarded a while ago.
  const { ada = '' } = await marks();
  const older = ada.replace(/\d+$/, (at) => String(Number(at) - 6000));
  await here.bridge.store.hset(unsettledKey(here.organization.base), 'ada', older);
  expect(codes(await reasonsNow())).toEqual(['unsettled']);
  open();
  behaviour.gate = undefined;
  await putting;
  await until(async () => Object.keys(await marks()).length === 0);
});

test('the switch to reverse is made while clients change their profiles all the time', async () => {
  const { behaviour } = here.legacy;
  behaviour.delayMs = 100;
  const over = new AbortController();
  const writing = Array.from({ length: 12 }, async (_, n) => {
    const player = await here.player(`user-${n}`);
    for (let change = 0; !over.signal.aborted; change++) {
      await put(player, `name-${n}-${change}`);
      await sleep(20);
    }
  });
  await until(async () => Object.keys(await marks()).length > 3);
  await verify();
  const switched = await runTool(
    {
      ...environmentFor(here.bridge.config.keyPrefix),
      LEGACY_BASE_URL: here.legacy.url,
    },
    'cutover set reverse --wait 120 --hold 60',
  );
  over.abort();
  await Promise.all(writing);
  expect(switched).toMatchObject({ code: 0, out: expect.stringMatching(/^The mode is reverse/) });
});
