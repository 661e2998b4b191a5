import { encodeReference } from '../../domain/profile.ts';
import { addToCollection, setObject, setWallet } from '../../redis/operator/profile-data.ts';
import { parseId } from '../command-line.ts';
import type { AdminCommand } from './context.ts';
import { done } from '../tool.ts';
import { warnOfLegacy } from './legacy.ts';
import { organizationOption, parseHttpUrl, parseWallet } from './options.ts';

/*
 * What profiles show or refer to, and players cannot change: the catalogue of objects, the users' collections, and
 * their wallets. Each is a group with one command.
 */

interface ObjectOptions {
  org: string;
  datasource: string;
  object: string;
}

/** `admin object …`: the catalogue of image objects. */
export function addObject(program: AdminCommand): void {
  const example =
    'object set --org acme --datasource hats --object top-hat --url https://cdn.example/top-hat.png';
  program
    .command('object')
    .description("maintain an organization's catalogue of image objects")
    .examples(example)
    .command('set')
    .description("set an object's image URL; profiles that refer to the object show it at once")
    .requiredOption(...organizationOption)
    .requiredOption('--datasource <id>', 'datasource id', parseId)
    .requiredOption('--object <id>', 'object definition id', parseId)
    .requiredOption('--url <url>', 'http or https URL of the image', parseHttpUrl)
    .examples(example)
    .runs(async (context, { org, datasource, object, url }: ObjectOptions & { url: string }) => {
      const { store, base } = await context.existingOrganization(org);
      const reference = { datasourceId: datasource, objectDefinitionId: object };
      await setObject(store, base, encodeReference(reference), url);
      await warnOfLegacy(context, 'set the URL there as well, or profiles get the one that it shows');
      const text = `Object ${object} of ${datasource} has the URL ${url}.`;
      return done({ organizationId: org, ...reference, url }, text);
    });
}

/** `admin collection …`: what users own. */
export function addCollection(program: AdminCommand): void {
  const example = 'collection add --org acme --user u-1 --datasource hats --object top-hat';
  program
    .command('collection')
    .description('record the objects that users own')
    .examples(example)
    .command('add')
    .description("add an object to a user's collection")
    .requiredOption(...organizationOption)
    .requiredOption('--user <user>', 'user id', parseId)
    .requiredOption('--datasource <id>', 'datasource id', parseId)
    .requiredOption('--object <id>', 'object definition id', parseId)
    .examples(example)
    .runs(async (context, { org, user, datasource, object }: ObjectOptions & { user: string }) => {
      const { store, base } = await context.existingOrganization(org);
      const reference = { datasourceId: datasource, objectDefinitionId: object };
      const outcome = await addToCollection(store, base, user, encodeReference(reference));
      const has = outcome === 'present' ? 'already had' : 'now has';
      const text = `${user} ${has} object ${object} of ${datasource}.`;
      return done({ organizationId: org, userId: user, ...reference }, text);
    });
}

interface WalletOptions {
  org: string;
  user: string;
  address: string;
  unverified?: boolean;
}

/** `admin wallet …`: linked wallets. */
export function addWallet(program: AdminCommand): void {
  const example = 'wallet set --org acme --user u-1 --address 0x52908400098527886E0F7030069857D2E4169EE7';
  program
    .command('wallet')
    .description('record linked EVM wallets')
    .examples(example)
    .command('set')
    .description(
      "link a wallet to a user's profile, which is created if there is none; only a verified wallet is shown",
    )
    .requiredOption(...organizationOption)
    .requiredOption('--user <user>', 'user id', parseId)
    .requiredOption('--address <address>', '0x and 40 hexadecimal digits', parseWallet)
    .option('--unverified', 'the user has not proved ownership of the wallet')
    .examples(example, `${example} --unverified`)
    .runs(async (context, { org, user, address, unverified = false }: WalletOptions) => {
      const { store, base } = await context.existingOrganization(org);
      await setWallet(store, base, user, address, unverified ? 'wu' : 'w');
      await warnOfLegacy(context, 'set the wallet there as well, or the profile gets the one that it shows');
      const text = `${user} has the ${unverified ? 'unverified' : 'verified'} wallet ${address}.`;
      return done({ organizationId: org, userId: user, address, verified: !unverified }, text);
    });
}
