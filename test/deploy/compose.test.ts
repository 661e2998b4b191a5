import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';

test.each(['.dockerignore', '.gitignore'])('%s leaves out the secrets of compose.yaml', (file) => {
  const { secrets } = parse(readFileSync('scripts/deploy/compose.yaml', 'utf8')) as {
    secrets: Record<string, { file: string }>;
  };
  const ignored = readFileSync(file, 'utf8').split(/\/?\n/);
  expect(Object.keys(secrets)).not.toEqual([]);
  for (const secret of Object.values(secrets)) {
    expect(ignored).toContain(`scripts/deploy/${dirname(secret.file)}`);
  }
});
