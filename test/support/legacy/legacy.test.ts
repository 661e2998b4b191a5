import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startLegacy, type Legacy } from './legacy.ts';

let legacy: Legacy;
beforeAll(async () => {
  legacy = await startLegacy({ prefix: '/old' });
  legacy.addKey('player', { organization: 'acme', role: 'player', user: 'u1' });
  legacy.addKey('admin', { organization: 'acme', role: 'admin' });
});
afterAll(() => legacy.close());

const call = async (method: string, path: string, apiKey: string, body?: unknown) => {
  const response = await fetch(`${legacy.url}${path}`, {
    method,
    headers: { 'x-api-key': apiKey, 'x-platform-organization-id': 'acme' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) };
};

test('the stand-in legacy service has the contract’s five operations and errors of its own', async () => {
  expect(await call('GET', '/api/profile/', 'player')).toMatchObject({ status: 404 });
  expect(await call('PUT', '/api/profile', 'player', { username: '  Ada  ' })).toEqual({
    status: 200,
    body: { username: 'Ada' },
  });
  expect(await call('POST', '/api/profile/username/deny/', 'admin', { Ada: 'Eve', Bob: 'x' })).toMatchObject({
    status: 204,
  });
  expect(await call('GET', '/api/profile/', 'player')).toEqual({ status: 200, body: { username: 'Eve' } });
  expect(await call('POST', '/api/profile/username/deny/', 'admin', { Eve: 'Bob' })).toEqual({
    status: 200,
    body: ['Eve'],
  });
  expect(await call('DELETE', '/api/profile/username/deny/', 'admin', ['Bob', 'Eve'])).toEqual({
    status: 200,
    body: { usernamesDeleted: ['Bob'], usernamesInUse: ['Eve'] },
  });
  expect(await call('PUT', '/api/profile/username/denylist/', 'admin', ['Eve'])).toEqual({
    status: 409,
    body: { error: { legacyCode: 'E_IN_USE', text: 'in use: Eve' } },
  });
  expect(await call('PUT', '/api/profile/username/denylist/', 'admin', ['Zoe'])).toMatchObject({
    status: 204,
  });
  expect([...legacy.organization('acme').denied]).toEqual(['Zoe']);
});
