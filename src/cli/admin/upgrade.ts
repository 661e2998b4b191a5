import { counted } from '../../lib/numbers.ts';
import { layoutFault, layoutVersion, upgradeLayout } from '../../redis/layout.ts';
import type { AdminCommand, AdminContext } from './context.ts';
import { done, interrupted, problem, type CommandResult } from '../tool.ts';

/** `admin upgrade`: converts the stored data to the layout of this version. */
export function addUpgrade(program: AdminCommand): void {
  program
    .command('upgrade')
    .description(
      'convert the stored data to the layout of this version; stop all instances of the service first. If it is interrupted, run it again',
    )
    .examples('upgrade', 'upgrade --json')
    .runs(upgrade);
}

async function upgrade(context: AdminContext, { json = false }: { json?: boolean }): Promise<CommandResult> {
  const { store, keyPrefix } = await context.open({ anyLayout: true });
  const outcome = await upgradeLayout(store, keyPrefix, {
    signal: context.signal,
    onProgress: (count) => {
      if (!json && count % 10_000 === 0) context.note(`${counted(count, 'organization')} upgraded`);
    },
  });
  switch (outcome.kind) {
    case 'upgraded':
      return done(
        { from: outcome.from, to: layoutVersion, organizations: outcome.organizations },
        `Upgraded from layout ${outcome.from} to ${layoutVersion}: ${counted(outcome.organizations, 'organization')}.`,
      );
    case 'current':
      return done(
        { from: layoutVersion, to: layoutVersion, organizations: 0 },
        `The stored data already has layout ${layoutVersion}.`,
      );
    case 'newer':
    case 'unknown':
      return problem(layoutFault(outcome) ?? '');
    case 'interrupted':
      return interrupted(
        'interrupted: the service does not start until the upgrade is finished; run it again',
      );
  }
}
