import { beforeEach, describe, expect, test } from '@jest/globals';
import type { LegacyRequest, LegacyResponse } from '../../../../src/cutover/forward/legacy.ts';
import { createDelivery, type Delivered } from '../../../../src/cutover/replay/delivery/delivery.ts';
import type { QueuedChange } from '../../../../src/cutover/replay/queue/changes.ts';
import type { OpenPicture } from '../../../../src/media/store.ts';
import { freshPrefix } from '../../../support/redis.ts';
import { useTestStore } from '../../../support/use-store.ts';

const store = await useTestStore();
const picture: OpenPicture = {
  type: 'image/png',
  size: 3,
  bytes: Buffer.from('png'),
  readFrom: () => Promise.resolve(undefined),
  close: () => Promise.resolve(),
};
let sent: string[];
let answers: [status: number, body: object][];
beforeEach(() => {
  sent = [];
  answers = [];
});

const send = async ({ headers }: LegacyRequest): Promise<LegacyResponse> => {
  sent.push(headers[headers.indexOf('content-type') + 1]?.split(';')[0] ?? '');
  const [status, answer] = answers.shift() ?? [500, {}];
  const body = (async function* () {
    yield Buffer.from(JSON.stringify(answer));
  })();
  return { status, headers: [], body };
};

const delivery = createDelivery({
  store,
  keyPrefix: freshPrefix(),
  organizationHeader: 'x-platform-organization-id',
  legacy: { timeoutMs: 1000, send, close: () => Promise.resolve() },
  media: { open: () => Promise.resolve(picture) },
  queue: { readOverwrite: async function* () {} },
});

describe('a change of fields and a picture is sent in two parts:', () => {
  const caller = { organizationId: 'acme', keyId: 'k_ada', role: 'player', userId: 'ada' } as const;
  const change: QueuedChange['change'] = { kind: 'put', username: 'Ada ', picture: { file: 'me.png' } };
  const queued: QueuedChange = { id: '1-1', at: 1, caller, sealedKey: 'sealed', change, isRetry: false };
  const uploaded = { file: 'me.png', url: 'https://legacy.example/1' };

  const deliver = async (maySend: () => boolean = () => true): Promise<Delivered | undefined> => {
    const prepared = await delivery.prepare(queued, 'key');
    if (typeof prepared === 'string') throw new Error(prepared);
    return await delivery.send(prepared, maySend);
  };

  test('if the first fails, the second is not sent', async () => {
    answers = [[422, { code: 'E_NAME' }]];
    expect(await deliver()).toEqual({ outcome: { kind: 'answered', status: 422 }, remark: 'E_NAME' });
    expect(sent).toEqual(['application/json']);
  });

  test('if the second fails, that is the outcome', async () => {
    answers = [[200, {}]];
    expect(await deliver()).toEqual({ outcome: { kind: 'answered', status: 500 } });
    expect(sent).toEqual(['application/json', 'multipart/form-data']);
  });

  test('if the first is made otherwise, the second is sent all the same', async () => {
    const { url: profilePictureUrl } = uploaded;
    answers = [
      [200, { username: 'Ada' }],
      [200, { username: 'Ada', profilePictureUrl }],
    ];
    const remark = 'its answer shows another username';
    expect(await deliver()).toEqual({ outcome: { kind: 'answered', status: 200 }, uploaded, remark });
  });

  test('the second is not sent once another instance may replay', async () => {
    answers = [[200, {}]];
    expect(await deliver(() => sent.length === 0)).toBeUndefined();
    expect(sent).toEqual(['application/json']);
  });
});
