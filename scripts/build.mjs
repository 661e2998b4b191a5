// Compiles to dist/, which mirrors the top level, so that a file finds openapi.yaml and its assets beside
// itself by the same relative path whether it runs from source or compiled.
import { spawnSync } from 'node:child_process';
import { cpSync, rmSync } from 'node:fs';

rmSync('dist', { recursive: true, force: true });
const tsc = spawnSync(
  process.execPath,
  ['node_modules/typescript/bin/tsc', '--project', 'tsconfig.build.json'],
  {
    stdio: 'inherit',
  },
);
if (tsc.status !== 0) process.exit(tsc.status ?? 1);
cpSync('src', 'dist/src', { recursive: true, filter: (path) => !path.endsWith('.ts') });
cpSync('openapi.yaml', 'dist/openapi.yaml');
