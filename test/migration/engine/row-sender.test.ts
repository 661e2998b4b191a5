import { expect, test } from '@jest/globals';
import { createRowSender } from '../../../src/migration/engine/load/row-sender.ts';
import { createOrganizations } from '../../../src/migration/engine/organizations.ts';
import { freshPrefix } from '../../support/redis.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();

test('a flush waits for calls that somebody else is waiting for', async () => {
  const prefix = freshPrefix();
  const organizations = createOrganizations(store, prefix);
  const [slow, fast] = [await organizations.find('slow'), await organizations.find('fast')];
  let answer = (): void => {};
  const answered: string[] = [];
  const sender = createRowSender(async ({ id, base }, rows) => {
    if (id === 'slow') await new Promise<void>((resolve) => (answer = resolve));
    await store.rpush(`${base}sent`, rows);
    answered.push(id);
  });
  sender.add(slow, ['x'.repeat(2 * 1024 * 1024)]);
  const room = sender.room();
  sender.add(fast, ['x']);
  const flushed = sender.flush().then(() => answered.slice());
  while (!answered.includes('fast')) await store.ping();
  answer();
  expect(await flushed).toEqual(['fast', 'slow']);
  await room;
});
