import { runAdmin } from '../src/cli/admin/run.ts';

const interrupt = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupt.abort());
// Whoever reads has seen enough, as in `admin audit … | head`.
process.stdout.on('error', () => process.exit(0));

process.exitCode = await runAdmin(process.argv.slice(2), {
  env: process.env,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  signal: interrupt.signal,
});
