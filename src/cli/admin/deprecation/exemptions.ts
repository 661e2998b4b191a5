import { InvalidArgumentError, type Command } from 'commander';
import type { Exemption } from '../../../deprecation/policy/policy-edits.ts';
import { parseId } from '../options.ts';
import { readTime } from './policy-options.ts';

/**
 * Adds `--exempt-org`, `--exempt-key` and `--until`, whose order matters: an `--until` applies to all exemptions before
 * it that have none yet. The list is filled while the command line is parsed.
 */
export function addExemptions(command: Command): Exemption[] {
  const exemptions: Exemption[] = [];
  command
    .option(
      '--exempt-org <organization>',
      'organization exempt from brownouts and sunset; repeatable',
      (text) => {
        exemptions.push({ organizationId: parseId(text) });
      },
    )
    .option(
      '--exempt-key <key-id>',
      'public id of a key exempt from brownouts and sunset; repeatable',
      (text) => {
        exemptions.push({ keyId: parseId(text) });
      },
    )
    .option('--until <time>', 'end of the exemptions given before it, ISO 8601', (text) => {
      const until = readTime(text);
      const open = exemptions.filter((exemption) => exemption.until === undefined);
      if (open.length === 0) {
        throw new InvalidArgumentError('It must follow the --exempt-org or --exempt-key that it ends.');
      }
      for (const exemption of open) exemption.until = until;
    });
  return exemptions;
}
