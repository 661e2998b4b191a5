import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { residentMiB } from '../../support/run/process-usage.ts';
import { keyPrefix, openDeployment, type Deployment } from '../../../scripts/drills/history/deployment.ts';
import { startLegacy, type Legacy } from '../../support/legacy/legacy.ts';
import { runTool } from '../../support/tools/admin.ts';
import { createTestOrganization } from '../../support/bridge.ts';

/** `test`, or visibly skipped where the machine does not tell how much memory a process takes. */
const testMemory = residentMiB(process.pid) === undefined ? test.skip : test;

const mebibyte = 1024 * 1024;
const organizations = ['acme', 'blue', 'coral'];

let legacy: Legacy;
let deployment: Deployment;
const adminKeys = new Map<string, string>();

beforeAll(async () => {
  legacy = await startLegacy({ recording: false });
  // Sending and reading 240 MiB counts as the legacy service's time to respond.
  const environment = {
    LEGACY_BASE_URL: legacy.url,
    LEGACY_TIMEOUT: '120',
    MAX_LIST_BYTES: String(100 * mebibyte),
  };
  deployment = await openDeployment({ store: 'single', environment });
  for (const id of organizations) {
    const config = { keyPrefix, organizationHeader: 'x-platform-organization-id' };
    const { newKey } = await createTestOrganization(deployment.bridges[0].url, config, deployment.store, id);
    const { apiKey } = await newKey({ role: 'admin' });
    legacy.addKey(apiKey, { organization: id, role: 'admin' });
    adminKeys.set(id, apiKey);
  }
  const { code } = await runTool({ ALLOW_EVICTION: '1', ...deployment.env }, 'cutover set mirror --hold 60');
  expect(code).toBe(0);
});
afterAll(async () => {
  await deployment.close();
  await legacy.close();
});

testMemory('in mirror mode three bodies of 80 MiB at once take the bridge less than 160 MiB', async () => {
  const [bridge] = deployment.bridges;
  // Unknown for a moment while a process that it has started ends.
  const resident = (): number => residentMiB(bridge.pid()) ?? 0;
  const before = resident();
  let most = before;
  const watching = setInterval(() => (most = Math.max(most, resident())), 20);
  // The legacy service reads them to their end, and refuses them.
  const body = Buffer.alloc(80 * mebibyte, 'a');
  const statuses = await Promise.all(
    organizations.map(async (id) => {
      const response = await fetch(`${bridge.url}/api/profile/username/denylist/`, {
        method: 'PUT',
        headers: {
          'x-api-key': adminKeys.get(id) ?? '',
          'x-platform-organization-id': id,
          'content-type': 'application/json',
        },
        body,
      });
      expect(response.headers.get('x-powered-by')).toBe('legacy');
      return response.status;
    }),
  );
  clearInterval(watching);
  expect(statuses).toEqual([400, 400, 400]);
  expect(most - before).toBeLessThan(160);
});
