import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

function namesIn(file: string, name: RegExp): Set<string> {
  return new Set([...readFileSync(file, 'utf8').matchAll(name)].map(([found]) => found));
}

test('the page of the configuration lists every variable that is read, and no other', () => {
  const documented = namesIn('scripts/deploy/CONFIGURATION.md', /(?<=^\| (?:`[A-Z_]+`, )*`)[A-Z_]+(?=`)/gm);
  const read = namesIn('src/config.ts', /(?<=')[A-Z]+(_[A-Z]+)*(?=')/g);
  // Each secret has such a second name, which the page explains above the table.
  for (const name of ['ADMIN_TOKEN_FILE', 'REDIS_URL_FILE']) read.delete(name);
  // By the migration tool.
  read.add('SOURCE_PASSWORD').add('SOURCE_PASSWORD_FILE');
  expect([...documented].toSorted()).toEqual([...read].toSorted());
});

test('the image has the pages that messages and help texts name', () => {
  const copied = namesIn('Dockerfile', /(?<=^COPY )\S+\.md(?= )/gm);
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).map((name) => `src/${name}`);
  const named = [...files, 'scripts/profile-bridge.ts']
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => [...namesIn(name, /(?<=^(?!\s*\/?\*).*)(?:src|scripts)(?:\/[\w-]+)+\.md/gm)]);
  expect(copied.size).toBeGreaterThan(0);
  expect(new Set(named)).toEqual(copied);
});

test('the image has the mappings that the page of the migration names', () => {
  const named = namesIn('src/migration/README.md', /(?<=--mapping )src(?:\/[\w-]+)+(?=\/[\w-]+\.yaml)/g);
  const copied = namesIn('Dockerfile', /(?<=^COPY )src\/\S+(?= src\/\S+$)/gm);
  expect(named.size).toBeGreaterThan(0);
  expect([...copied]).toEqual(expect.arrayContaining([...named]));
});
