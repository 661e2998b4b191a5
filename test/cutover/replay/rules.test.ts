import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  delayAfter,
  probeSucceeded,
  nextAfter,
  orderForm,
  sendable,
  type Attempts,
  type Next,
  type DeliveryOutcome,
} from '../../../src/cutover/replay/rules.ts';

const timeout = 10_000;
const first: Attempts = { sent: 1, claimsName: false, hasOlder: false };
const answered = (status: number): DeliveryOutcome => ({ kind: 'answered', status });
const next = (outcome: DeliveryOutcome, attempts: Partial<Attempts> = {}): Next =>
  nextAfter(outcome, { ...first, ...attempts }, timeout);

describe('after a response of the legacy service, a change', () => {
  test.each([200, 204])('with %i is done', (status) => {
    expect(next(answered(status))).toEqual({ kind: 'done' });
  });

  test.each([500, 502, 503])('with %i is sent again once it cannot take effect late', (status) => {
    expect(next(answered(status))).toEqual({ kind: 'retry', afterMs: 2 * timeout });
  });

  test.each([408, 425, 429])('with %i is sent again soon', (status) => {
    expect(next(answered(status))).toEqual({ kind: 'retry', afterMs: 500 });
  });

  test('with Retry-After is sent again no sooner than that, or ten minutes', () => {
    const after = (status: number, retryAfter: number, sent = 1): Next =>
      next({ kind: 'answered', status, retryAfter }, { sent });
    expect(after(429, 7)).toEqual({ kind: 'retry', afterMs: 7000 });
    expect(after(429, 7, 6)).toEqual({ kind: 'retry', afterMs: 16_000 });
    expect(after(503, 7)).toEqual({ kind: 'retry', afterMs: 2 * timeout });
    expect(after(503, 150)).toEqual({ kind: 'retry', afterMs: 150_000 });
    expect(after(503, 86_400)).toEqual({ kind: 'retry', afterMs: 600_000 });
  });

  test.each([401, 403])('with %i is sent with another key', (status) => {
    expect(next(answered(status))).toEqual({ kind: 'other-key' });
  });

  test.each([301, 304, 404, 405, 410])('with %i makes the whole replay pause', (status) => {
    expect(next(answered(status))).toEqual({
      kind: 'pause',
      reason: `the legacy service answered a change with ${status}: LEGACY_BASE_URL is probably wrong`,
    });
  });

  test('with success and a body that is not JSON makes the whole replay pause', () => {
    expect(next({ kind: 'answered', status: 200, isForeign: true })).toEqual({
      kind: 'pause',
      reason:
        'the legacy service answered a change with something other than JSON: LEGACY_BASE_URL is probably wrong',
    });
    expect(next({ kind: 'answered', status: 503, isForeign: true })).toMatchObject({ kind: 'retry' });
    expect(next({ kind: 'answered', status: 400, isForeign: true })).toEqual({ kind: 'aside' });
  });

  test.each([400, 409, 413, 415, 422])('with %i is set aside', (status) => {
    expect(next(answered(status))).toEqual({ kind: 'aside' });
  });

  test('with 409 on a name waits for older changes, which may release the name', () => {
    const waits: Partial<Attempts> = { claimsName: true, hasOlder: true };
    expect(next(answered(409), waits)).toEqual({ kind: 'retry', afterMs: 500 });
    expect(next(answered(409), { ...waits, sent: 20 })).toEqual({ kind: 'retry', afterMs: 5000 });
    expect(next(answered(409), { claimsName: true })).toEqual({ kind: 'aside' });
    expect(next(answered(409), { hasOlder: true })).toEqual({ kind: 'aside' });
  });
});

test('a change without a response is sent again once it cannot take effect late', () => {
  expect(next({ kind: 'lost' })).toEqual({ kind: 'retry', afterMs: 2 * timeout });
  expect(next({ kind: 'lost' }, { sent: 20 })).toMatchObject({ afterMs: 60_000 });
});

test('a legacy service that cannot be reached makes the whole replay pause', () => {
  expect(next({ kind: 'unreachable' })).toMatchObject({ kind: 'pause' });
});

test('delays double up to a minute', () => {
  expect([1, 2, 3, 8, 9, 1000].map(delayAfter)).toEqual([500, 1000, 2000, 60_000, 60_000, 60_000]);
});

test('a read that the legacy service understands shows that it works and accepts the key', () => {
  expect([200, 204, 400, 404, 422].filter((status) => !probeSucceeded(status))).toEqual([]);
  expect([302, 401, 403, 429, 500, 503].filter((status) => probeSucceeded(status))).toEqual([]);
  expect([200, 404].map((status) => probeSucceeded(status, true))).toEqual([false, true]);
});

describe('of the changes that wait,', () => {
  const put = (id: string, userId: string, ...names: string[]) => ({ id, userId, names });
  const denylist = (id: string) => ({ id, names: [] });
  const ids = (waiting: Parameters<typeof sendable>[0], held: string[] = [], limit?: number): string =>
    sendable(waiting, ({ id }) => held.includes(id), limit)
      .map(({ id }) => id)
      .join(' ');

  test('those of different users are sent together, those of one user one after the other', () => {
    expect(ids([put('1', 'a'), put('2', 'b'), put('3', 'a')])).toBe('1 2');
    expect(ids([put('1', 'a'), put('2', 'b'), put('3', 'a')], ['1'])).toBe('2');
  });

  test('a claim waits for the older changes that concern the name', () => {
    expect(ids([put('1', 'a', 'x', 'y'), put('2', 'b', 'x'), put('3', 'c', 'z')])).toBe('1 3');
  });

  test('a change of the denylist waits for all before it, and all behind it wait for it', () => {
    expect(ids([put('1', 'a'), denylist('2'), put('3', 'b')])).toBe('1');
    expect(ids([denylist('2'), put('3', 'b')])).toBe('2');
    expect(ids([denylist('2'), put('3', 'b')], ['2'])).toBe('');
  });

  test('no more are sent than the limit allows', () => {
    expect(ids([put('1', 'a'), put('2', 'b')], [], 1)).toBe('1');
  });

  test('the oldest is always sent, unless it is held', () => {
    const change = fc.record({
      userId: fc.option(fc.constantFrom('a', 'b', 'c'), { nil: undefined }),
      names: fc.array(fc.constantFrom('x', 'y', 'z')),
    });
    fc.assert(
      fc.property(fc.array(change, { minLength: 1 }), (changes) => {
        const waiting = changes.map((one, at) => ({ id: String(at), ...one }));
        expect(sendable(waiting, () => false)[0]?.id).toBe('0');
      }),
    );
  });
});

test('names that either service may treat as equal are ordered as one', () => {
  expect(new Set(['Ada', 'ada ', 'ＡＤＡ'].map(orderForm)).size).toBe(1);
});
