import { Command } from 'commander';
import { adminCommand, examplesText } from '../command-line.ts';
import type { AdminContext, Report } from './context.ts';

/** A command of the tool, or a group of them. */
export class AdminCommand extends Command {
  readonly #context: AdminContext;

  constructor(context: AdminContext, name: string) {
    super(name);
    this.#context = context;
  }

  override createCommand(name = ''): AdminCommand {
    return new AdminCommand(this.#context, name);
  }

  /** Adds examples to the help; they are given without the tool's name. */
  examples(...examples: string[]): this {
    return this.addHelpText('after', examplesText(adminCommand, examples));
  }

  /** Adds `--json`, and makes the command run with its arguments and options, and print its report. */
  runs(run: (context: AdminContext, ...args: never[]) => Promise<Report>): this {
    return this.option('--json', 'print JSON, for machines').action(async (...args) => {
      this.#context.finish(await run(this.#context, ...(args as never[])), this.opts());
    });
  }
}
