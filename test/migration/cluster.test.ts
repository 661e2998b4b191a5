import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startCluster, type RedisCluster } from '../support/servers/redis-cluster.ts';
import { createTool, newFolder, writeSource } from '../support/tools/migrate.ts';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startCluster();
});

afterAll(async () => {
  await cluster.stop();
});

test('apply, verify, prune and export have the same results on a cluster as on a single Redis', async () => {
  const organizations = ['acme', '{other}', 'third', 'Ω'];
  const reference = { datasourceId: 'd', objectDefinitionId: 'o' };
  const source = writeSource({
    organizations: organizations.map((organizationId) => ({
      organizationId,
      usernameComparison: 'case-insensitive',
    })),
    'api-keys': organizations.map((organizationId) => ({ organizationId, apiKey: 'k', role: 'admin' })),
    objects: organizations.map((organizationId) => ({
      organizationId,
      ...reference,
      url: 'https://x.example',
    })),
    collections: organizations.map((organizationId) => ({ organizationId, userId: 'u1', ...reference })),
    denylist: organizations.map((organizationId) => ({ organizationId, username: 'Root' })),
    profiles: Array.from({ length: 2000 }, (_, at) => ({
      organizationId: organizations[at % 4],
      userId: `u${at}`,
      username: `Name-${at}`,
      avatar: reference,
      updatedAt: 1_700_000_000_000 + at,
    })),
  });
  const [single, many] = [createTool(), createTool(cluster.url, 'pb:')];
  for (const tool of [single, many]) {
    expect(await tool.json('apply', '--source', source)).toMatchObject({
      exitCode: 0,
      json: { created: 2020 },
    });
    expect(await tool.json('apply', '--source', source)).toMatchObject({
      exitCode: 0,
      json: { unchanged: 2020 },
    });
    expect(await tool.json('verify', '--source', source)).toMatchObject({
      exitCode: 0,
      json: { indexed: 2000 },
    });
    expect((await tool.json('status')).json).toMatchObject({ runs: [{ phase: 'finished' }] });
  }
  const contents = await single.contents();
  expect(await many.contents()).toEqual(contents);

  const fewer = newFolder();
  for (const [name, text] of Object.entries(contents)) {
    // It would show that the files are not as they were exported.
    if (name === 'manifest.json') continue;
    writeFileSync(
      join(fewer, name),
      name === 'profiles.ndjson' ? text.split('\n').slice(5).join('\n') : text,
    );
  }
  expect(await many.json('verify', '--source', fewer)).toMatchObject({ exitCode: 1, json: { extra: 5 } });
  expect(await many.json('apply', '--source', fewer, '--prune')).toMatchObject({
    json: { pruned: { profiles: 5 } },
  });
  expect(await many.json('verify', '--source', fewer)).toMatchObject({ exitCode: 0 });
});
