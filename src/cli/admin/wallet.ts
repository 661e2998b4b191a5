import { Command } from 'commander';
import { printable } from '../../lib/system/terminal.ts';
import { setWallet } from '../../redis/profiles.ts';
import { action, UnknownOrganizationError, type AdminContext, type Report } from './context.ts';
import { addExamples, organizationOption, parseWallet, requiredId, withExamples } from './options.ts';

const example = 'wallet set --org acme --user u-1 --address 0x52908400098527886E0F7030069857D2E4169EE7';

interface WalletOptions {
  org: string;
  user: string;
  address: string;
  unverified?: boolean;
}

/** `admin wallet …`: linked wallets. */
export function walletCommand(context: AdminContext): Command {
  const group = new Command('wallet').description('linked EVM wallets');
  const set = group
    .command('set')
    .description("links a wallet to a user's profile; only a verified one is shown")
    .addOption(organizationOption())
    .addOption(requiredId('--user <user>', 'user id'))
    .requiredOption('--address <address>', '0x and 40 hexadecimal digits', parseWallet)
    .option('--unverified', 'the user has not proved ownership of the wallet')
    .action(action(context, run));
  withExamples(set, [example, `${example} --unverified`]);
  return addExamples(group, [example]);
}

async function run(
  context: AdminContext,
  { org, user, address, unverified = false }: WalletOptions,
): Promise<Report> {
  const { store, base } = await context.organization(org);
  const outcome = await setWallet(store, base, user, { address, isVerified: !unverified });
  if (outcome === 'unknown-organization') throw new UnknownOrganizationError(org);
  return {
    kind: 'done',
    json: { organizationId: org, userId: user, address, verified: !unverified },
    text: `${printable(user)} has the ${unverified ? 'unverified' : 'verified'} wallet ${address}.`,
  };
}
