import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readdir } from 'node:fs/promises';
import sharp from 'sharp';
import { startLegacyBridge, type LegacyBridge } from '../legacy-bridge.ts';

let full: LegacyBridge;
beforeAll(async () => {
  full = await startLegacyBridge({ replaySecret: 'secret'.repeat(6), replayMax: 0 }, {}, 'reverse');
});
afterAll(() => full.close());

test('a change beyond REPLAY_MAX is 503 replay-unavailable, and leaves nothing behind', async () => {
  const ada = await full.player('ada');
  const picture = await sharp({ create: { width: 4, height: 4, channels: 3, background: 'red' } })
    .png()
    .toBuffer();
  const upload = new FormData();
  upload.set('profilePicture', new Blob([new Uint8Array(picture)], { type: 'image/png' }), 'p.png');
  for (const body of [JSON.stringify({ username: 'Ada' }), upload]) {
    const headers = typeof body === 'string' ? { 'content-type': 'application/json' } : {};
    const response = await full.send(ada, 'PUT', '/api/profile/', { body, headers });
    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await response.json()).toMatchObject({ code: 'replay-unavailable' });
  }
  expect(await readdir(full.bridge.mediaFolder)).toEqual([]);
  expect((await full.send(ada, 'GET', '/api/profile/')).status).toBe(404);
});
