import { runMigrate } from '../src/cli/migrate/run.ts';
import { runFromShell } from '../src/cli/shell.ts';

await runFromShell((shell) => runMigrate(process.argv.slice(2), shell));
