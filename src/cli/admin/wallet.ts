import { Command } from 'commander';
import { setWallet } from '../../redis/profiles.ts';
import { unknownOrganization, type AdminContext } from './context.ts';
import { addExamples, idOption, organizationOption, parseWallet, withExamples } from './options.ts';
import { printable } from '../../lib/system/terminal.ts';

interface WalletOptions {
  org: string;
  user: string;
  address: string;
  unverified?: boolean;
  json?: boolean;
}

/** `admin wallet …`: linked wallets. */
export function walletCommand(context: AdminContext): Command {
  const group = new Command('wallet').description('linked EVM wallets');
  const set = group
    .command('set')
    .description("links a wallet to a user's profile; only a verified one is shown")
    .addOption(organizationOption())
    .addOption(idOption('--user <user>', 'user id').makeOptionMandatory())
    .requiredOption('--address <address>', '0x and 40 hexadecimal digits', parseWallet)
    .option('--unverified', 'the user has not proved that it is theirs')
    .action(async (options: WalletOptions) => {
      const { org, user, address, unverified = false } = options;
      const { store, base } = await context.organization(org);
      const outcome = await setWallet(store, base, user, { address, isVerified: !unverified });
      context.finish(
        outcome === 'unknown-organization'
          ? unknownOrganization(org)
          : {
              kind: 'done',
              json: { organizationId: org, userId: user, address, verified: !unverified },
              text: `${printable(user)} has the ${unverified ? 'unverified' : 'verified'} wallet ${address}.`,
            },
        options,
      );
    });
  withExamples(set, [
    'wallet set --org acme --user u-1 --address 0x52908400098527886E0F7030069857D2E4169EE7',
    'wallet set --org acme --user u-1 --address 0x52908400098527886E0F7030069857D2E4169EE7 --unverified',
  ]);
  return addExamples(group, [
    'wallet set --org acme --user u-1 --address 0x52908400098527886E0F7030069857D2E4169EE7',
  ]);
}
