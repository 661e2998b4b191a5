import { join } from 'node:path';

const root = join(import.meta.dirname, '../../..');

/**
 * What to start `node` with to run this file, as `src/main`: as it was compiled for the run of the tests, which starts
 * twice as fast, or from source outside of one.
 */
export function programOf(file: string): string[] {
  const compiled = process.env['TEST_PROGRAM'];
  return compiled === undefined
    ? ['--import', 'tsx', join(root, `${file}.ts`)]
    : [join(compiled, `${file}.js`)];
}
