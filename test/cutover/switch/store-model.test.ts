import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Authority, Mode } from '../../../src/cutover/modes.ts';
import { readLease, type SwitchPhase } from '../../../src/cutover/switch/protocol.ts';
import {
  newRegistration,
  readCutover,
  cutoverAdvance,
  cutoverBegin,
  cutoverHeartbeat,
  cutoverRemove,
  cutoverWithdraw,
} from '../../../src/cutover/switch/registry.ts';
import { freshPrefix } from '../../support/redis.ts';
import {
  advance,
  begin,
  emptied,
  forget,
  heartbeat,
  regressed,
  withdraw,
  type StoreState,
} from './store-model.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();

const lease = 600_000;
const { registration } = newRegistration({ kind: 'bridge', legacy: true, replay: true });
const instance = fc.constantFrom('a', 'b');
/** Mostly undefined, for what fits the state: few sequences of arbitrary calls get far into a switch. */
const mostlyFitting = <Value>(arbitrary: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
const token = mostlyFitting(fc.constantFrom('t1', 't2'));
const mode = fc.constantFrom<Mode>('shadow', 'mirror');
const phase = mostlyFitting(fc.constantFrom<SwitchPhase>('stop', 'reads', 'back'));

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant('beat' as const),
      id: instance,
      phase,
      isBehind: fc.boolean(),
      hasSeenMode: fc.boolean(),
      authority: fc.constantFrom<Authority | 'none'>('none', 'legacy', 'redis'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constant('begin' as const), token, from: mostlyFitting(mode), to: mode }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ op: fc.constant('advance' as const), token, phase, goOn: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('withdraw' as const), token }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('expire' as const) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('empty' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('regress' as const),
      switches: fc.nat({ max: 1 }),
      during: phase,
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('silence' as const), id: instance }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('forget' as const), id: instance }) },
);
const steps = fc.array(step, { minLength: 10, maxLength: 25, size: 'max' });

test('the scripts of a switch do what the model says, for any sequence of calls', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      const prefix = freshPrefix();
      const key = `${prefix}cutover`;
      let model: StoreState = { mode: 'shadow', epoch: 0, since: 1, lost: 0, made: -1, done: '', beats: {} };
      await store.hset(key, 'mode', 'shadow', 'since', '1');
      let [highest, latest] = [0, 0];

      for (const one of sequence) {
        const current = { token: model.underWay?.token ?? 't1', phase: model.underWay?.phase ?? 'stop' };
        switch (one.op) {
          case 'beat': {
            // The epoch that an instance has seen is never above the highest there was.
            highest = Math.max(highest, model.epoch);
            latest = Math.max(latest, model.since);
            const epoch = Math.max(0, highest - Number(one.isBehind));
            const since = Math.max(0, latest - Number(!one.hasSeenMode));
            const acknowledged = one.phase ?? current.phase;
            model = heartbeat(model, one.id, { epoch, since }, acknowledged, one.authority);
            const text = JSON.stringify(registration);
            const reply = await cutoverHeartbeat(
              store,
              key,
              one.id,
              text,
              epoch,
              since,
              acknowledged,
              one.authority,
            );
            expect(reply).toMatchObject({
              kind: 'ok',
              mode: model.mode,
              epoch: Math.max(model.epoch, model.lost),
              lost: model.lost,
              to: model.underWay?.to ?? '',
              phase: model.underWay?.phase ?? '',
            });
            break;
          }
          case 'begin': {
            const { token: by = current.token, from = model.mode || 'native' } = one;
            const expected = begin(model, by, from, one.to);
            model = expected.state;
            expect((await cutoverBegin(store, key, by, from, one.to, lease))[0]).toBe(expected.reply);
            break;
          }
          case 'advance': {
            const { token: by = current.token, phase: known = current.phase } = one;
            const expected = advance(model, by, known, one.goOn);
            model = expected.state;
            const reply = await cutoverAdvance(store, key, by, known, lease, one.goOn ? 1 : 0, 'test');
            expect(reply[0]).toBe(expected.reply);
            break;
          }
          case 'withdraw': {
            const { token: by = current.token } = one;
            const expected = withdraw(model, by);
            model = expected.state;
            expect(await cutoverWithdraw(store, key, by)).toBe(expected.reply);
            break;
          }
          case 'expire':
            if (model.underWay === undefined) break;
            model = { ...model, underWay: { ...model.underWay, isExpired: true } };
            await store.hset(key, 'until', '0');
            break;
          case 'empty':
            model = emptied;
            await store.unlink(key);
            break;
          case 'regress':
            highest = Math.max(highest, model.epoch);
            latest = Math.max(latest, model.since);
            model = regressed(model, one.switches, one.during);
            await store.hset(key, 'epoch', model.epoch);
            await store.hdel(key, 'to', 'phase', 'token', 'until');
            for (let epoch = model.epoch; epoch <= highest; epoch++)
              await store.hdel(key, `history:${epoch}`);
            if (model.underWay !== undefined) {
              const { to, phase: during, token: by } = model.underWay;
              await store.hset(key, { to, phase: during, token: by, until: Date.now() + lease });
            }
            break;
          case 'silence': {
            const beat = model.beats[one.id];
            if (beat === undefined) break;
            model = { ...model, beats: { ...model.beats, [one.id]: { ...beat, isSilent: true } } };
            await store.hset(key, `beat:${one.id}`, `${Date.now() - 60_000} ${beat.epoch} ${beat.phase}`);
            break;
          }
          case 'forget':
            model = forget(model, one.id);
            await cutoverRemove(store, key, one.id, '');
        }
        if (model.mode !== '') await store.hset(key, 'since', model.since);
      }
      const { mode: stored, epoch, hasLostSwitch, underWay, instances } = await readCutover(store, prefix);
      expect({ stored, epoch, hasLostSwitch, to: underWay?.to, phase: underWay?.phase }).toEqual({
        stored: model.mode || 'native',
        epoch: model.epoch,
        hasLostSwitch: model.lost > 0 || Object.values(model.beats).some((beat) => beat.epoch > model.epoch),
        to: model.underWay?.to,
        phase: model.underWay?.phase,
      });
      expect(Object.fromEntries(instances.map((one) => [one.id, one.acknowledged ?? '-']))).toEqual(
        Object.fromEntries(Object.entries(model.beats).map(([id, beat]) => [id, beat.phase])),
      );
      await store.unlink(key);
    }),
    { numRuns: 100 },
  );
});

test('a withdrawal goes on without an instance only once that serves no reads by what it last heard', () => {
  const script = readFileSync('src/redis/lua/lib/cutover.lua', 'utf8');
  const silentAfter = /^local silent_after = (\d+)$/m.exec(script)?.[1];
  expect(Number(silentAfter)).toBeGreaterThan(readLease);
});
