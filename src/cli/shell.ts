import { createInterface } from 'node:readline/promises';
import { CommanderError, type Command } from 'commander';
import { configureErrorsAndHelp } from './command-line.ts';

/** What a command-line tool takes from the process that runs it. */
export interface Shell {
  env: NodeJS.ProcessEnv;
  /** Writes a text. If it cannot be written, or nobody reads it, `ifLost` is reported as an error. */
  out: (text: string, ifLost?: string) => void;
  /** Errors and progress. */
  err: { isTTY?: boolean | undefined; write: (text: string) => unknown };
  /** Aborted when the tool is to stop at the next safe point, with the reason `readerGone` if it is that. */
  signal: AbortSignal;
  /** Asks a question at the terminal, and rejects if `signal` is aborted; undefined if there is no terminal. */
  ask?: ((question: string) => Promise<string>) | undefined;
}

/** Nobody reads standard output any more, as after `… | head`. */
export const readerGone = new DOMException('nobody reads the output any more', 'AbortError');

/** How long after a signal another one counts as the same, in ms: npm forwards what the terminal has sent already. */
const sameSignalMs = 500;

/**
 * Runs a command-line tool and sets the exit code of this process to its own, also if nobody reads what it prints. The
 * first SIGINT or SIGTERM aborts `signal`, another one half a second later or more ends the process at once.
 */
export async function runFromShell(run: (shell: Shell) => Promise<number>): Promise<void> {
  // The client of Redis prints there what the tool itself reports, in one line with the remedy.
  // eslint-disable-next-line no-console -- silenced, not used
  console.warn = () => {};
  const interrupt = new AbortController();
  let secondFrom = 0;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (!interrupt.signal.aborted) secondFrom = performance.now() + sameSignalMs;
      else if (performance.now() >= secondFrom) process.exit(130);
      interrupt.abort();
    });
  }
  watchOutput(() => interrupt.abort(readerGone));

  let isLost = false;
  const exitCode = await run({
    env: process.env,
    out: (text, ifLost) => {
      const lost = (): void => {
        if (ifLost === undefined) return;
        isLost = true;
        process.stderr.write(`error: ${ifLost}\n`);
      };
      if (interrupt.signal.reason === readerGone) lost();
      else process.stdout.write(text, (error) => error && lost());
    },
    err: process.stderr,
    signal: interrupt.signal,
    ask: process.stdin.isTTY ? (question) => askAtTerminal(question, interrupt) : undefined,
  });
  process.exitCode = isLost ? 1 : exitCode;
}

/** Runs a program on the arguments of this process; wrong usage is one line and exit code 2. */
export async function runProgram(program: Command): Promise<void> {
  configureErrorsAndHelp(
    program,
    (text) => process.stdout.write(text),
    (text) => process.stderr.write(text),
  );
  try {
    await program.parseAsync();
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  }
}

/** Ends this process as soon as its standard output cannot be written, except because nobody reads it any more. */
export function watchOutput(onReaderGone: () => void): void {
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') {
      onReaderGone();
      return;
    }
    process.stderr.write(`error: standard output cannot be written (${code})\n`);
    process.exit(1);
  });
  // Without a listener it would end what is under way, such as a switch of the mode.
  process.stderr.on('error', () => {});
}

async function askAtTerminal(question: string, interrupt: AbortController): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // While it asks, Ctrl-C is a key and not a signal.
  terminal.on('SIGINT', () => interrupt.abort());
  try {
    return await terminal.question(question, { signal: interrupt.signal });
  } catch {
    interrupt.signal.throwIfAborted();
    // Ctrl-D is no answer.
    return '';
  } finally {
    terminal.close();
  }
}
