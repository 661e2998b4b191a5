import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { createTool } from '../support/tools/migrate.ts';

// One folder per behaviour: input files, command.txt with the tool's arguments line by line (paths relative to the
// folder), and expected.json with what each command came to and what Redis held at the end. A new bug is a new folder.
const folder = new URL('cases/', import.meta.url).pathname;

interface Expected {
  steps: { exitCode: number; result?: object; error?: string }[];
  /** Lines of the export, by entity. */
  holds: Record<string, unknown[]>;
}

const paths = new Set(['--source', '--mapping', '--report']);

describe('a migration case', () => {
  test.each(readdirSync(folder).sort())('%s', async (name) => {
    const tool = createTool();
    const commands = readFileSync(join(folder, name, 'command.txt'), 'utf8')
      .trim()
      .split('\n');
    const expected = JSON.parse(readFileSync(join(folder, name, 'expected.json'), 'utf8')) as Expected;
    expect(expected.steps).toHaveLength(commands.length);
    for (const [step, command] of commands.entries()) {
      const words = command.split(' ');
      const args = words.map((word, at) =>
        paths.has(words[at - 1] ?? '') ? join(folder, name, word) : word,
      );
      const call = await tool.json(...args);
      const { exitCode, result = {}, error } = expected.steps[step] ?? { exitCode: -1 };
      // On a slow machine there is progress besides, a line every five seconds.
      const err = call.err.replace(/^.*, [\d,]+\/s.*\n/gm, '');
      expect({ command, exitCode: call.exitCode, err }).toEqual({
        command,
        exitCode,
        err: error === undefined ? '' : expect.stringContaining(error),
      });
      expect(call.json).toMatchObject(result);
      expect(err.split('\n').length).toBeLessThanOrEqual(2);
      expect(err).not.toMatch(/\bat .*:\d+:\d+/);
    }
    const contents = await tool.contents();
    for (const [entity, records] of Object.entries(expected.holds)) {
      const lines = contents[`${entity}.ndjson`]?.split('\n').slice(0, -1) ?? [];
      expect({ [entity]: lines.map((line) => JSON.parse(line) as unknown) }).toEqual({ [entity]: records });
    }
  });
});
