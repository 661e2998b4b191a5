import { execFile, spawnSync } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startBridge, type TestBridge } from '../../support/bridge.ts';

let bridge: TestBridge;
let folder: string;
let env: NodeJS.ProcessEnv;
beforeAll(async () => {
  bridge = await startBridge();
  const organization = await bridge.newOrganization();
  const { apiKey } = await organization.newKey({ role: 'player', userId: 'u1' });
  env = { ...process.env, BASE_URL: bridge.url, API_KEY: apiKey, ORGANIZATION_ID: organization.id };
  delete env['NODE_OPTIONS'];
  folder = await mkdtemp(join(tmpdir(), 'snippets-'));
  await cp(new URL('../../../src/api/docs/snippets', import.meta.url), folder, { recursive: true });
});
afterAll(async () => {
  await bridge.close();
  await rm(folder, { recursive: true, force: true });
});

const run = async (command: string, args: string[]): Promise<string> => {
  const { stdout, stderr } = await promisify(execFile)(command, args, { cwd: folder, env });
  return stdout + stderr;
};

/** Runs a program whose calls log-deprecated.mjs logs. */
const runLogging = async (program: string): Promise<string> =>
  await run(process.execPath, ['--import', './log-deprecated.mjs', '--input-type=module', '-e', program]);

/** What each of them must report, once per path, and what it must not. */
const expectTold = (text: string, times = 1): void => {
  expect(text.match(/deprecated:/g)).toHaveLength(times);
  expect(text).toContain('/api/profile/');
  expect(text).toContain('2026-11-01T00:00:00');
  expect(text).toContain('Fri, 31 Dec 2027 23:59:59 GMT');
  expect(text).toContain('<https://kv.example.com/>; rel="successor-version"');
  expect(text).not.toContain(env['API_KEY'] ?? '');
};

const has = (command: string): boolean => spawnSync(command, ['--version']).status === 0;
const testWith = (command: string) => (has(command) ? test : test.skip);

describe('the code shown to client teams', () => {
  testWith('curl')('curl shows the headers of an answer', async () => {
    const lines = (await run('sh', ['headers.sh'])).split(/\r?\n/);
    expect(lines.map((line) => line.split(':')[0])).toEqual(['Deprecation', 'Sunset', 'Link', '']);
  });

  test('fetch reports once per method and path, and passes the answer on', async () => {
    const program = `
      import { fetchAndLog } from './fetch-and-log.mjs';
      const headers = { 'x-api-key': process.env.API_KEY, '${bridge.config.organizationHeader}': process.env.ORGANIZATION_ID };
      for (const path of ['/api/profile/', '/api/profile/', '/livez']) {
        const answer = await fetchAndLog(process.env.BASE_URL + path, { headers });
        console.log(answer.status, (await answer.text()).length > 0);
      }`;
    const text = await run(process.execPath, ['--input-type=module', '-e', program]);
    expectTold(text);
    expect(text).toContain('404 true\n404 true\n200 true\n');
  });

  test('Node reports calls of fetch and node:http once per path, whatever the answer', async () => {
    const program = `
      import { get } from 'node:http';
      import { once } from 'node:events';
      const base = process.env.BASE_URL;
      for (const path of ['/api/profile/?q=1', '/api/profile/', '/livez']) await (await fetch(base + path)).text();
      for (const path of ['/api/profile/username/deny/', '/api/profile/username/deny/', '/livez']) {
        const [answer] = await once(get(base + path), 'response');
        answer.resume();
        await once(answer, 'end');
      }`;
    const text = await runLogging(program);
    expectTold(text, 2);
    expect(text).toContain(`deprecated: GET ${bridge.url}/api/profile/ {`);
    expect(text).toContain(`deprecated: GET ${bridge.url}/api/profile/username/deny/ {`);
  });

  test('Node changes no call, whatever headers the response has', async () => {
    const program = `
      import { createServer } from 'node:http';
      import { once } from 'node:events';
      const server = createServer((request, response) => response.setHeader('X-Name', '\u00fc').end()).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const answer = await fetch('http://127.0.0.1:' + server.address().port);
      console.log(answer.status, answer.headers.get('x-name'));
      server.close();`;
    const text = await runLogging(program);
    expect(text).toBe('200 \u00fc\n');
  });

  testWith('python3')('Python reports calls of urllib once per path, whatever the answer', async () => {
    const program = `
import os, urllib.error, urllib.request
import log_deprecated
for path in ["/api/profile/?q=1", "/api/profile/", "/livez"]:
    try:
        urllib.request.urlopen(os.environ["BASE_URL"] + path)
    except urllib.error.HTTPError as error:
        print(error.code)`;
    const text = await run('python3', ['-c', program]);
    expectTold(text);
    expect(text).toContain('401\n401\n');
  });
});
