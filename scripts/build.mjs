// node scripts/build.mjs [folder] [option of tsc ...]
// Compiles to dist/, or the folder, which mirrors the top level, so that relative paths to openapi.yaml, package.json
// and assets are the same whether a file runs from source or compiled.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, rmSync } from 'node:fs';

const [folder = 'dist', ...options] = process.argv.slice(2);

rmSync(folder, { recursive: true, force: true });
const tsc = spawnSync(
  process.execPath,
  ['node_modules/typescript/bin/tsc', '--project', 'tsconfig.build.json', '--outDir', folder, ...options],
  { stdio: 'inherit' },
);
if (tsc.status !== 0) process.exit(tsc.status ?? 1);
cpSync('src', `${folder}/src`, { recursive: true, filter: (path) => !path.endsWith('.ts') });
for (const file of ['openapi.yaml', 'package.json']) cpSync(file, `${folder}/${file}`);
chmodSync(`${folder}/scripts/profile-bridge.js`, 0o755);
