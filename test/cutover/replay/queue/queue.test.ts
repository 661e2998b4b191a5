import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { createApiKeyCipher, type ApiKeyCipher } from '../../../../src/cutover/replay/api-key-cipher.ts';
import { createQueueing } from '../../../../src/cutover/replay/queueing.ts';
import type { AcceptedChange } from '../../../../src/cutover/replay/queue/changes.ts';
import { currentProfile } from '../../../../src/cutover/replay/current-state.ts';
import { createReplayQueue, type ReplayQueue } from '../../../../src/cutover/replay/queue/queue.ts';
import { defaultSettings } from '../../../../src/domain/settings.ts';
import { banUsernames, overwriteDenylist, removeDenied } from '../../../../src/redis/denylist.ts';
import {
  organizationBase,
  replayOrganizationsKey,
  replaySendersKey,
  settingsKey,
  unreferencedPicturesKey,
} from '../../../../src/redis/keys.ts';
import { registerOrganization, saveSettings } from '../../../../src/redis/organizations.ts';
import { putProfile } from '../../../../src/redis/profiles.ts';
import { isBacklogFull, readWriteSnapshot, type WriteSnapshot } from '../../../../src/redis/changes.ts';
import type { ProfileChange } from '../../../../src/domain/profile.ts';
import { trackPending } from '../../../../src/media/lifecycle.ts';
import { anyCommand, run, type Command, type Model } from '../../../support/models/usernames.ts';
import { freshPrefix } from '../../../support/redis.ts';
import { interceptCalls } from '../../../support/store.ts';
import { storeTime } from '../../../../src/redis/connection/client.ts';
import { useTestStore } from '../../../support/use-store.ts';

const store = await useTestStore();
let cipher: ApiKeyCipher;
let prefix: string;
let base: string;
let queue: ReplayQueue;
const organizationId = 'acme';

beforeAll(async () => {
  cipher = createApiKeyCipher([randomBytes(32)]);
});
beforeEach(async () => {
  prefix = freshPrefix();
  base = organizationBase(prefix, organizationId);
  queue = createReplayQueue(store, prefix);
  await saveSettings(store, prefix, organizationId, defaultSettings);
});

/** What a change is judged by in the mode reverse. */
async function inReverse(userId?: string, most = 1000): Promise<WriteSnapshot> {
  const caller = {
    organizationId,
    keyId: userId === undefined ? 'k_admin' : `k_${userId}`,
    role: userId === undefined ? ('admin' as const) : ('player' as const),
    ...(userId !== undefined && { userId }),
  };
  const queued = createQueueing({ kind: 'able', cipher }, most, queue)(caller, `secret of ${caller.keyId}`);
  return { ...(await readWriteSnapshot(store, base, userId)), queued };
}

async function put(userId: string, change: ProfileChange, most?: number) {
  return await putProfile(store, base, userId, change, await inReverse(userId, most));
}

async function byAdmin(most?: number) {
  return { store, base, keyId: 'k_admin', snapshot: await inReverse(undefined, most) };
}

async function upload(userId: string, file: string) {
  await trackPending(store, base, file, await storeTime(store));
  return await put(userId, { picture: { file } });
}

async function waiting(): Promise<AcceptedChange[]> {
  return (await queue.read(organizationId, 1000)).map(({ change }) => change);
}

/** The names of the overwrite that waits first. */
async function queuedList(): Promise<string[]> {
  const [change] = await waiting();
  if (change?.kind !== 'overwrite') throw new Error('the overwrite is not queued');
  const names: string[] = [];
  for await (const part of queue.readOverwrite(organizationId, change.list)) names.push(...part);
  return names;
}

/** The keys of the lists of overwrites. */
const lists = (): string => `${base}cutover:replay-list:*`;

/** All keys of the organization and what they hold, except what was recorded of the call itself. */
/** Except for whether there may be new changes, which another one that is refused announces as well. */
async function everything(): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const key of (await store.keys(`${prefix}*`)).sort()) found[key] = await store.dump(key);
  delete found[replayOrganizationsKey(prefix)];
  return found;
}

describe('a change in the mode reverse is queued by the call that makes it', () => {
  test('a profile: the requested fields, the caller, and the encrypted key', async () => {
    const reference = { datasourceId: 'd', objectDefinitionId: 'o' };
    await store.hset(`${base}objects`, 'd\no', 'https://example.com/o.png');
    await put('ada', { username: 'Ann' });
    await put('ada', { username: 'Ada', picture: { reference }, avatar: null });
    const [, entry, ...others] = await queue.read(organizationId, 10);
    expect(others).toEqual([]);
    expect(entry).toMatchObject({
      caller: { organizationId, keyId: 'k_ada', role: 'player', userId: 'ada' },
      change: { kind: 'put', username: 'Ada', released: 'Ann', picture: { reference }, avatar: null },
      isRetry: false,
    });
    expect(entry && cipher.open(entry)).toBe('secret of k_ada');
    expect(entry).not.toHaveProperty('sender');
    const [seconds] = await store.time();
    expect(Math.abs(Number(seconds) * 1000 - (entry?.at ?? 0))).toBeLessThan(60_000);
  });

  test('a profile that is created without any field', async () => {
    await put('ada', {});
    expect(await waiting()).toEqual([{ kind: 'put' }]);
  });

  test('a profile: the username that a client states also if it is the current one, which releases nothing', async () => {
    await put('ada', { username: 'Ada' });
    await put('ada', { username: 'Ada', avatar: null });
    await put('ada', { avatar: null });
    expect((await waiting()).slice(1)).toEqual([
      { kind: 'put', username: 'Ada', avatar: null },
      { kind: 'put', avatar: null },
    ]);
  });

  test('a ban: the names that were denied, not those skipped or refused', async () => {
    await put('ada', { username: 'Ada' });
    await put('bob', { username: 'Bob' });
    await banUsernames(await byAdmin(), new Map([['root', 'x']]));
    const outcome = await banUsernames(
      await byAdmin(),
      new Map([
        ['root', 'y'],
        ['Ada', 'Eve'],
        ['Bob', 'Eve'],
        ['__proto__', 'z'],
      ]),
    );
    expect(outcome).toMatchObject({ kind: 'banned', failures: [{ username: 'Bob' }] });
    expect((await waiting()).slice(2)).toEqual([
      { kind: 'ban', replacements: [['root', 'x']] },
      {
        kind: 'ban',
        replacements: [
          ['Ada', 'Eve'],
          ['__proto__', 'z'],
        ],
      },
    ]);
  });

  test('nothing, if a denied name is banned that is in use: the legacy service may skip it', async () => {
    await put('ada', { username: 'bad' });
    await store.hset(`${base}d0`, 'bad', '');
    const outcome = await banUsernames(await byAdmin(), new Map([['bad', 'good']]));
    expect(outcome).toEqual({ kind: 'banned', failures: [] });
    expect(await store.hget(`${base}p:ada`, 'u')).toBe('bad');
    expect(await waiting()).toHaveLength(1);
  });

  test('a long ban: each part that was applied', async () => {
    const names = Array.from({ length: 150 }, (_, at) => `n${at}`);
    await banUsernames(await byAdmin(), new Map(names.map((name) => [name, 'x'])));
    const parts = await waiting();
    expect(parts.length).toBeGreaterThan(1);
    const banned = parts.flatMap((part) => (part.kind === 'ban' ? part.replacements : []));
    expect(banned.map(([name]) => name)).toEqual(names);
  });

  test('a removal: the names that were removed', async () => {
    await put('ada', { username: 'Ada' });
    await banUsernames(await byAdmin(), new Map([['root', 'x']]));
    await removeDenied(await byAdmin(), ['Ada', 'unknown', 'root']);
    expect((await waiting()).at(-1)).toEqual({ kind: 'remove', usernames: ['root'] });
  });

  test.each([0, 1, 500])('an overwrite with %i names: the whole list, as it was given', async (count) => {
    const names = Array.from({ length: count }, (_, at) => `Ñ${at}`);
    expect(await overwriteDenylist(await byAdmin(), names)).toEqual({ kind: 'overwritten' });
    expect(await queuedList()).toEqual(names);
    for (const list of await store.keys(lists())) expect(await store.pttl(list)).toBe(-1);
  });

  test('an overwrite whose list is gone before it is committed: the whole list, by another attempt', async () => {
    let calls = 0;
    const losing = interceptCalls(store, async (send, command) => {
      // After the stage was opened and filled.
      const isFirstCommit = command === 'evalsha' && ++calls === 3;
      if (isFirstCommit) await store.del(await store.keys(lists()));
      return await send();
    });
    const context = { ...(await byAdmin()), store: losing };
    expect(await overwriteDenylist(context, ['a', 'b'])).toEqual({ kind: 'overwritten' });
    expect(await waiting()).toHaveLength(1);
    expect(await queuedList()).toEqual(['a', 'b']);
  });

  test('nothing, if the change is refused', async () => {
    await put('ada', { username: 'Ada' });
    const before = await waiting();
    expect(await put('bob', { username: 'Ada' })).toEqual({ kind: 'taken' });
    expect(await overwriteDenylist(await byAdmin(), ['Ada'])).toMatchObject({ kind: 'in-use' });
    await banUsernames(await byAdmin(), new Map([['Ada', 'Ada']]));
    await removeDenied(await byAdmin(), ['Ada']);
    expect(await waiting()).toEqual(before);
    expect(await store.keys(lists())).toEqual([]);
  });
});

test('in other modes nothing is queued', async () => {
  const snapshot = await readWriteSnapshot(store, base, 'ada');
  const context = { store, base, keyId: 'k', snapshot };
  await putProfile(store, base, 'ada', { username: 'Ada' }, snapshot);
  await banUsernames(context, new Map([['root', 'x']]));
  await removeDenied(context, ['root']);
  await overwriteDenylist(context, ['a']);
  expect(await store.keys(`${base}cutover:*`)).toEqual([]);
});

test('beyond the limit a change is refused and changes nothing', async () => {
  await overwriteDenylist(await byAdmin(), ['a']);
  await put('ada', { username: 'Ada' });
  const before = await everything();
  const attempts = [
    async () => put('bob', { username: 'Bob' }, 2),
    async () => banUsernames(await byAdmin(2), new Map([['b', 'x']])),
    async () => removeDenied(await byAdmin(2), ['a']),
    async () => overwriteDenylist(await byAdmin(2), []),
  ];
  for (const attempt of attempts) {
    const error: unknown = await attempt().catch((thrown: unknown) => thrown);
    expect(isBacklogFull(error)).toBe(true);
    expect(await everything()).toEqual(before);
  }
  expect(await put('bob', { username: 'Bob' }, 3)).toMatchObject({ kind: 'put' });
});

describe('an uploaded file', () => {
  test('is kept until it has been replayed, though its profile has another picture by then', async () => {
    await upload('ada', 'one.png');
    const outcome = await put('ada', { picture: null });
    expect(outcome).toEqual({ kind: 'put', profile: {} });
    expect(await store.zcard(unreferencedPicturesKey(base))).toBe(0);
    const [uploaded] = await queue.read(organizationId, 1);
    await queue.complete(organizationId, uploaded?.id ?? '');
    expect(await store.zrange(unreferencedPicturesKey(base), '0', '-1')).toEqual(['one.png']);
  });

  test('stays with the profile that still has it, with the URL that the legacy service shows it at', async () => {
    const before = await storeTime(store);
    await upload('ada', 'one.png');
    const [uploaded] = await queue.read(organizationId, 1);
    await queue.complete(organizationId, uploaded?.id ?? '', 'k', {
      file: 'one.png',
      url: 'https://legacy.example/1',
    });
    const [pf, po, pt] = await store.hmget(`${base}p:ada`, 'pf', 'po', 'pt');
    expect([pf, po]).toEqual(['one.png', 'https://legacy.example/1']);
    expect(Number(pt)).toBeGreaterThanOrEqual(before);
    expect(await store.zcard(unreferencedPicturesKey(base))).toBe(0);
    expect(await upload('ada', 'two.png')).toMatchObject({ unusedFile: 'one.png' });
    expect(await store.hmget(`${base}p:ada`, 'po', 'pt')).toEqual([null, null]);
  });
});

test('a file that was given up when its change was set aside is not given up again by the retry', async () => {
  await upload('ada', 'one.png');
  await upload('ada', 'two.png');
  const [uploaded] = await queue.read(organizationId, 1);
  await queue.setAside(organizationId, uploaded?.id ?? '', { status: 400, reason: '' });
  // As the sweep does with the file.
  expect(await store.zrem(unreferencedPicturesKey(base), 'one.png')).toBe(1);
  await queue.retry(organizationId, uploaded?.id ?? '');
  const [, retry] = await queue.read(organizationId, 2);
  await queue.complete(organizationId, retry?.id ?? '');
  expect(await store.zcard(unreferencedPicturesKey(base))).toBe(0);
});

test('a replayed file gives no URL to the picture that its profile has by then', async () => {
  await upload('ada', 'one.png');
  await upload('ada', 'two.png');
  const [uploaded] = await queue.read(organizationId, 1);
  const shown = { file: 'one.png', url: 'https://legacy.example/1' };
  await queue.complete(organizationId, uploaded?.id ?? '', 'k', shown);
  expect(await store.hmget(`${base}p:ada`, 'pf', 'po')).toEqual(['two.png', null]);
});

describe('the queue', () => {
  test('is read in order, page by page', async () => {
    for (const name of ['a', 'b', 'c']) await put(name, { username: name });
    const [first, second] = await queue.read(organizationId, 2);
    expect([first?.change, second?.change]).toMatchObject([{ username: 'a' }, { username: 'b' }]);
    const rest = await queue.read(organizationId, 10, second?.id);
    expect(rest.map(({ change }) => change)).toMatchObject([{ username: 'c' }]);
  });

  test('remembers the sender of an entry until it is complete', async () => {
    await put('ada', { username: 'Ada' });
    const [entry] = await queue.read(organizationId, 1);
    const id = entry?.id ?? '';
    expect(await queue.mark(organizationId, id, 'one')).toBe('one');
    expect(await queue.read(organizationId, 1)).toMatchObject([{ id, sender: 'one' }]);
    await queue.complete(organizationId, id);
    await queue.complete(organizationId, id);
    expect(await queue.mark(organizationId, id, 'two', 'one')).toBeUndefined();
    expect(await queue.mark(organizationId, id, 'two')).toBeUndefined();
    expect(await queue.read(organizationId, 1)).toEqual([]);
    expect(await store.exists(`${base}cutover:replay-senders`)).toBe(0);
  });

  test('remembers since when the oldest entry is sent again, and the last answer to it', async () => {
    await put('ada', { username: 'Ada' });
    const [entry] = await queue.read(organizationId, 1);
    const id = entry?.id ?? '';
    const retried = async () => (await queue.state()).organizations[0]?.retried;
    await queue.mark(organizationId, id, 'one');
    expect(await retried()).toBeUndefined();
    await queue.mark(organizationId, id, 'one', '', '503 (down)');
    const first = await retried();
    expect(first).toEqual({ since: expect.any(Number), answer: '503 (down)' });
    await queue.mark(organizationId, id, 'one', '', 'no response');
    await queue.mark(organizationId, id, 'two', 'one');
    expect(await retried()).toEqual({ ...first, answer: 'no response' });
    await queue.complete(organizationId, id);
    expect(await store.exists(replaySendersKey(base))).toBe(0);
  });

  test('lets a second sender take an entry only if it names the first', async () => {
    await put('ada', { username: 'Ada' });
    const [entry] = await queue.read(organizationId, 1);
    const mark = async (sender: string, known?: string) =>
      await queue.mark(organizationId, entry?.id ?? '', sender, known);
    expect(await mark('one')).toBe('one');
    expect(await mark('two')).toBe('one');
    expect(await mark('two', 'one')).toBe('two');
    expect(await mark('one')).toBe('two');
    expect(await mark('two')).toBe('two');
  });

  test('has a change that is retried while it waits once only, at its end', async () => {
    await put('ada', { username: 'Ada' });
    await put('bob', { username: 'Bob' });
    const [entry] = await queue.read(organizationId, 1);
    expect(await queue.retry(organizationId, entry?.id ?? '')).toBe(true);
    expect(await queue.read(organizationId, 10)).toMatchObject([
      { isRetry: false, change: { username: 'Bob' } },
      { isRetry: true, change: { username: 'Ada' } },
    ]);
  });

  test('removes the list of an overwrite with its entry', async () => {
    await overwriteDenylist(await byAdmin(), ['a']);
    const [entry] = await queue.read(organizationId, 1);
    await queue.complete(organizationId, entry?.id ?? '');
    expect(await store.keys(lists())).toEqual([]);
  });

  test('reports how many entries wait, and in which organizations', async () => {
    await registerOrganization(store, prefix, 'quiet');
    await put('ada', { username: 'Ada' });
    await put('bob', { username: 'Bob' });
    const [first] = await queue.read(organizationId, 1);
    await queue.setAside(organizationId, first?.id ?? '', { status: 400, reason: 'invalid-body' });
    const [second] = await queue.read(organizationId, 1);
    const { organizations } = await queue.state();
    expect(organizations).toEqual([{ organizationId, entries: 1, setAside: 1, oldestAt: second?.at }]);
  });

  test('is discarded with everything kept for it, and reports the entries by kind', async () => {
    await upload('ada', 'one.png');
    await put('ada', { picture: null });
    await overwriteDenylist(await byAdmin(), ['a']);
    await removeDenied(await byAdmin(), ['a']);
    expect(await queue.discard(0)).toEqual({ put: 2, ban: 0, remove: 1, overwrite: 1 });
    expect(await waiting()).toEqual([]);
    expect(await store.keys(`${base}cutover:*`)).toEqual([]);
    expect(await store.zrange(unreferencedPicturesKey(base), '0', '-1')).toEqual(['one.png']);
  });
});

test('a long queue is discarded to its end, and each entry is counted', async () => {
  for (let n = 0; n < 150; n += 1) await put('ada', { username: `Ada ${n}` });
  expect(await queue.discard(0)).toEqual({ put: 150, ban: 0, remove: 0, overwrite: 0 });
  expect(await waiting()).toEqual([]);
});

test('the API keys of all changes that are set aside are forgotten, and nothing else of them', async () => {
  const entry = { key: 'k_1', role: 'player', user: 'ada', kind: 'put', change: '{}', retry: '1' };
  const row = (sealed: string) => JSON.stringify({ ...entry, sealed, status: '422', reason: 'x', at: '1' });
  const many = Array.from({ length: 1500 }, (_, n) => [`1-${n}`, row(n % 3 === 0 ? '' : 'secret')]).flat();
  await store.hset(`${base}cutover:replay-aside`, ...many);
  await queue.discard(0);
  const left = Object.values(await store.hgetall(`${base}cutover:replay-aside`));
  expect(left.map((text) => JSON.parse(text) as unknown)).toEqual(
    Array.from({ length: 1500 }, () => JSON.parse(row('')) as unknown),
  );
  expect(await queue.listSetAside(organizationId)).toHaveLength(1500);
});

test('a tool that was held up until a later switch discards nothing', async () => {
  await put('ada', { username: 'Ada' });
  await store.hset(settingsKey(base), 'epoch', '2');
  expect(await queue.discard(1)).toEqual({ put: 0, ban: 0, remove: 0, overwrite: 0 });
  expect(await waiting()).toHaveLength(1);
});

describe('an API key that the legacy service refuses', () => {
  const refused = 'cutover:replay-refusals';
  /** As if it had been refused for the first time so long ago. */
  const earlier = async (keyId: string) => await store.hincrby(`${base}${refused}`, keyId, -60_000);

  test('is refused since the first time', async () => {
    await queue.refuse(organizationId, 'k_ada');
    await earlier('k_ada');
    const { forMs, isOtherAccepted } = await queue.refuse(organizationId, 'k_ada');
    expect(forMs).toBeGreaterThanOrEqual(60_000);
    expect(isOtherAccepted).toBe(false);
  });

  test('is told whether another one was accepted since', async () => {
    for (const keyId of ['k_ada', 'k_bob']) await queue.refuse(organizationId, keyId);
    await earlier('k_ada');
    await queue.complete(organizationId, '1-1', 'k_eve');
    expect(await queue.refuse(organizationId, 'k_ada')).toMatchObject({ isOtherAccepted: true });
    await queue.complete(organizationId, '1-1', 'k_ada');
    await store.hincrby(`${base}${refused}`, '', -120_000);
    expect(await queue.refuse(organizationId, 'k_bob')).toMatchObject({ isOtherAccepted: false });
  });

  test('is off the record once it is accepted, and with the last one when another was', async () => {
    for (const keyId of ['k_ada', 'k_bob']) await queue.refuse(organizationId, keyId);
    await queue.complete(organizationId, '1-1', 'k_ada');
    expect((await store.hkeys(`${base}${refused}`)).sort()).toEqual(['', 'k_bob']);
    await queue.complete(organizationId, '1-1', 'k_bob');
    expect(await store.exists(`${base}${refused}`)).toBe(0);
    // Nothing is refused.
    await queue.complete(organizationId, '1-1', 'k_ada');
    expect(await store.exists(`${base}${refused}`)).toBe(0);
  });
});

describe('a change that was set aside', () => {
  async function setAside(): Promise<string> {
    await put('ada', { username: 'Ada' });
    const [entry] = await queue.read(organizationId, 1);
    const id = entry?.id ?? '';
    expect(await queue.setAside(organizationId, id, { status: 409, reason: 'username-taken' })).toBe(true);
    return id;
  }

  test('is listed with the reason, and out of the queue', async () => {
    const id = await setAside();
    expect(await waiting()).toEqual([]);
    expect(await queue.setAside(organizationId, id, { status: 409, reason: '' })).toBe(false);
    const listed = await queue.listSetAside(organizationId);
    expect(listed).toMatchObject([
      { id, status: 409, reason: 'username-taken', change: { kind: 'put', username: 'Ada' } },
    ]);
    expect(listed[0] && cipher.open(listed[0])).toBe('secret of k_ada');
  });

  test('becomes a retry at the end of the queue', async () => {
    const id = await setAside();
    await put('bob', { username: 'Bob' });
    expect(await queue.retry(organizationId, id)).toBe(true);
    expect(await queue.retry(organizationId, id)).toBe(false);
    expect(await queue.listSetAside(organizationId)).toEqual([]);
    const [, last] = await queue.read(organizationId, 10);
    expect(last).toMatchObject({ isRetry: true, change: { kind: 'put', username: 'Ada' } });
    expect(last && cipher.open(last)).toBe('secret of k_ada');
  });

  test('can be dropped', async () => {
    const id = await setAside();
    expect(await queue.drop(organizationId, id)).toBe(true);
    expect(await queue.drop(organizationId, id)).toBe(false);
    expect(await queue.listSetAside(organizationId)).toEqual([]);
  });

  test('keeps no API key once the mode has left reverse', async () => {
    await setAside();
    await queue.discard(0);
    const [listed] = await queue.listSetAside(organizationId);
    expect(listed).toMatchObject({ sealedKey: '', change: { kind: 'put', username: 'Ada' } });
    expect(listed && cipher.open(listed)).toBeUndefined();
  });
});

test('the current state of a user is given as the fields of a PUT', async () => {
  expect(await currentProfile(store, base, 'ada')).toBeUndefined();
  await upload('ada', 'one.png');
  expect(await currentProfile(store, base, 'ada')).toEqual({
    picture: { file: 'one.png' },
    avatar: null,
  });
  await put('ada', { username: 'Ada', picture: null });
  expect(await currentProfile(store, base, 'ada')).toEqual({
    username: 'Ada',
    picture: null,
    avatar: null,
  });
  await store.hset(`${base}p:ada`, 'pu', 'https://legacy.example/1');
  expect(await currentProfile(store, base, 'ada')).not.toHaveProperty('picture');
});

const users = ['u0', 'u1', 'u2'];
const command = anyCommand(users, ['a', 'b', 'c', 'é', 'e\u0301', '__proto__']);

test('replaying the queue in order onto an empty model gives what is stored', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { maxLength: 12 }), async (commands) => {
      prefix = freshPrefix();
      base = organizationBase(prefix, organizationId);
      queue = createReplayQueue(store, prefix);
      await store.hset(`${base}settings`, 'comparison', 'exact');
      for (const one of commands) await make(one);

      let model: Model = { comparison: 'exact', names: new Map(), denied: new Set() };
      for (const entry of await queue.read(organizationId, 1000)) {
        for (const one of await toCommands(entry.change, entry.caller.userId ?? '')) {
          model = run(model, one).after;
        }
      }
      const names = new Map<string, string>();
      for (const user of users) {
        const username = await store.hget(`${base}p:${user}`, 'u');
        if (username !== null) names.set(user, username);
      }
      expect(model.names).toEqual(names);
      expect([...model.denied].sort()).toEqual((await store.hkeys(`${base}d0`)).sort());
    }),
    { numRuns: 60 },
  );
});

async function make(asked: Command): Promise<void> {
  switch (asked.kind) {
    case 'put':
      await put(asked.user, { username: asked.name });
      break;
    case 'ban':
      await banUsernames(await byAdmin(), new Map(asked.replacements));
      break;
    case 'remove':
      await removeDenied(await byAdmin(), asked.names);
      break;
    case 'overwrite':
      await overwriteDenylist(await byAdmin(), asked.names);
  }
}

async function toCommands(change: AcceptedChange, user: string): Promise<Command[]> {
  switch (change.kind) {
    case 'put':
      return change.username === undefined ? [] : [{ kind: 'put', user, name: change.username }];
    case 'ban':
      return [change];
    case 'remove':
      return [{ kind: 'remove', names: change.usernames }];
    case 'overwrite': {
      const names: string[] = [];
      for await (const part of queue.readOverwrite(organizationId, change.list)) names.push(...part);
      return [{ kind: 'overwrite', names }];
    }
  }
}
