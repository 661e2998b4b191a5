import { expect, test } from '@jest/globals';
import { PassThrough } from 'node:stream';
import { readerGone, type Shell } from '../../src/cli/shell.ts';
import { createTool, interrupted } from '../../src/cli/tool.ts';

/** What the tool prints on standard error, and its exit code, when a command is interrupted with this message. */
async function interruptedWith(message: string | undefined, reason: unknown) {
  const err = new PassThrough();
  const shell = { env: {}, out: () => {}, err, signal: AbortSignal.abort(reason) } as unknown as Shell;
  const { program, run } = createTool('tool', {}, shell);
  program.command('wait').runs(async () => Promise.resolve(interrupted(message)));
  const exitCode = await run(['wait'], () => undefined);
  return { exitCode, printed: String(err.read() ?? '') };
}

test('a tool that is interrupted says so', async () => {
  expect(await interruptedWith(undefined, new Error('Ctrl-C'))).toEqual({
    exitCode: 130,
    printed: 'error: interrupted\n',
  });
});

test('a tool whose output nobody reads any more ends silently, unless there is something to be done', async () => {
  expect(await interruptedWith(undefined, readerGone)).toEqual({ exitCode: 130, printed: '' });
  expect(await interruptedWith('interrupted with 3 renames pending: run it again', readerGone)).toEqual({
    exitCode: 130,
    printed: 'error: interrupted with 3 renames pending: run it again\n',
  });
});
