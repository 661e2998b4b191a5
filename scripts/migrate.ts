import { runMigrate } from '../src/cli/migrate/run.ts';

const interrupt = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // Twice means now. Nothing is lost by it: the next start repeats a little.
    if (interrupt.signal.aborted) process.exit(130);
    interrupt.abort();
  });
}
// Whoever reads has seen enough, as in `migrate status | head`.
process.stdout.on('error', () => process.exit(0));

process.exitCode = await runMigrate(process.argv.slice(2), {
  env: process.env,
  out: (text) => process.stdout.write(text),
  err: process.stderr,
  signal: interrupt.signal,
});
