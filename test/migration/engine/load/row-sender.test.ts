import { expect, test } from '@jest/globals';
import { createRowSender } from '../../../../src/migration/engine/load/row-sender.ts';
import { createOrganizations } from '../../../../src/migration/context/organizations.ts';
import { freshPrefix } from '../../../support/redis.ts';
import { useTestStore } from '../../../support/use-store.ts';

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

test('a flush does not wait for rows that are added after it', async () => {
  const organization = await createOrganizations(store, freshPrefix()).find('acme');
  let answer = (): void => {};
  const sender = createRowSender(async ({ base }, rows) => {
    if (rows.includes('late')) await new Promise<void>((resolve) => (answer = resolve));
    await store.rpush(`${base}sent`, rows);
  });
  sender.add(organization, ['early']);
  const early = sender.flush();
  sender.add(organization, ['late']);
  const late = sender.flush();
  await early;
  expect(await store.lrange(`${organization.base}sent`, 0, -1)).toEqual(['[1,"early"]']);
  answer();
  await late;
  expect(await store.llen(`${organization.base}sent`)).toBe(2);
});

test('few rows of each of many organizations do not wait for more without bound', async () => {
  const organizations = createOrganizations(store, freshPrefix());
  const sent: string[] = [];
  const sender = createRowSender(async ({ id }) => {
    await store.ping();
    sent.push(id);
  });
  for (let count = 0; count < 200; count += 1) {
    sender.add(await organizations.find(`org-${count}`), ['x'.repeat(25 * 1024)]);
    await sender.room();
  }
  expect(sent.length).toBeGreaterThan(100);
});
