import { readFileSync } from 'node:fs';

/** The version of this program, as in package.json, which dist/ holds a copy of. */
export const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};
