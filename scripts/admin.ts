import { runAdmin } from '../src/cli/admin/run.ts';
import { runFromShell } from '../src/cli/shell.ts';

await runFromShell((shell) => runAdmin(process.argv.slice(2), shell));
