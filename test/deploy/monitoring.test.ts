import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { problemKinds } from '../../src/contract/problems.ts';
import { freshPrefix } from '../support/redis.ts';
import { startAdminPort, type TestAdminPort } from '../support/admin-port.ts';
import { useTestStore } from '../support/use-store.ts';

const read = (file: string): string => readFileSync(`scripts/deploy/${file}`, 'utf8');

const store = await useTestStore();
let port: TestAdminPort;
beforeAll(async () => {
  port = await startAdminPort({ store, keyPrefix: freshPrefix() });
});
afterAll(async () => {
  await port.close();
});

test.each(['prometheus/rules.yaml', 'grafana-dashboard.json'])(
  '%s uses only metrics that exist',
  async (file) => {
    const metrics = await (await fetch(`${port.url}/metrics`)).text();
    const existing = new Set([...metrics.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
    const used = [...read(file).matchAll(/\b(?:profile_bridge|nodejs|process)_[a-z0-9_]+/g)].map(([name]) =>
      name.replace(/(?<=duration_seconds)_(?:count|sum|bucket)$/, ''),
    );
    expect(used.length).toBeGreaterThan(5);
    for (const name of used) expect(existing).toContain(name);
  },
);

test('a panel that shows a state does not show earlier ones beside it', () => {
  const { panels } = JSON.parse(read('grafana-dashboard.json')) as {
    panels: { title: string; type: string; targets: { instant?: boolean }[] }[];
  };
  const states = panels.filter(({ type }) => type === 'stat');
  expect(states.map(({ title }) => title)).toContain('Phase');
  for (const { targets } of states) expect(targets).toMatchObject([{ instant: true }]);
});

test('the operations guide explains every problem code and every alert', () => {
  const guide = read('README.md');
  for (const code of Object.keys(problemKinds())) expect(guide).toContain(`\`${code}\``);
  const alerts = [...read('prometheus/rules.yaml').matchAll(/alert: (\w+)/g)].map(([, name]) => name);
  expect(alerts.length).toBeGreaterThan(3);
  for (const alert of alerts) expect(guide).toContain(`\`${alert}\``);
});
