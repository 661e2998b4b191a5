import { expect, test } from '@jest/globals';
import { PassThrough } from 'node:stream';
import { readerGone, type Shell } from '../../src/cli/shell.ts';
import { createTool, interrupted, type CommandResult } from '../../src/cli/tool.ts';

/** What the tool prints on standard error, and its exit code, when a command ends like this. */
async function endOf(result: CommandResult, reason: unknown) {
  const err = new PassThrough();
  const shell = { env: {}, out: () => {}, err, signal: AbortSignal.abort(reason) } as unknown as Shell;
  const { program, run } = createTool('tool', {}, shell);
  program.command('wait').runs(async () => Promise.resolve(result));
  const exitCode = await run(['wait'], () => undefined);
  return { exitCode, printed: String(err.read() ?? '') };
}

test('a tool that is interrupted says so', async () => {
  expect(await endOf(interrupted(), new Error('Ctrl-C'))).toEqual({
    exitCode: 130,
    printed: 'error: interrupted\n',
  });
});

test('a tool whose output nobody reads any more ends silently, unless it had something to report', async () => {
  expect(await endOf(interrupted('interrupted: run it again'), readerGone)).toEqual({
    exitCode: 130,
    printed: '',
  });
  const error = 'interrupted with 3 renames pending: run the same command again';
  expect(await endOf({ exitCode: 130, text: 'Stopped cleanly.', error }, readerGone)).toEqual({
    exitCode: 130,
    printed: `error: ${error}\n`,
  });
});

test.each([
  ['--tu x', "error: unknown option '--tu' (Did you mean --to?) See tool send --help\n"],
  [
    '--tu=postgres://reader:s3cret@db/game',
    "error: unknown option '--tu=postgres…db/game': see tool send --help\n",
  ],
  [
    '--tu=jdbc:mysql://db/game?user=reader&password=s3cret',
    "error: unknown option '--tu=jdbc:mysql://db/game?user=reader&…': see tool send --help\n",
  ],
  ['', "error: required option '--to <place>' not specified: see tool send --help\n"],
])(
  'a command without the option that it needs, given %j, says what is wrong, without a password',
  async (args, printed) => {
    const err = new PassThrough();
    const { program, run } = createTool('tool', {}, { env: {}, out: () => {}, err } as unknown as Shell);
    program
      .command('send')
      .requiredOption('--to <place>')
      .runs(async () => Promise.resolve({ exitCode: 0 }));
    expect(await run(['send', ...args.split(' ').filter(Boolean)], () => undefined)).toBe(2);
    expect(String(err.read())).toBe(printed);
  },
);
