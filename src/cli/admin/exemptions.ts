import { InvalidArgumentError, type Command } from 'commander';
import type { Exemption } from '../../deprecation/policy/policy-edits.ts';
import { parseId } from './options.ts';
import { readTime } from './policy-options.ts';

/**
 * Adds `--exempt-org`, `--exempt-key` and `--until`, whose order counts: an `--until` holds for all exemptions
 * before it that have none yet. The list fills while the command line is read.
 */
export function addExemptions(command: Command): Exemption[] {
  const exemptions: Exemption[] = [];
  command
    .option('--exempt-org <organization>', 'organization that is served all the same; repeatable', (text) => {
      exemptions.push({ organizationId: parseId(text) });
    })
    .option('--exempt-key <key-id>', 'public id of a key that is served all the same; repeatable', (text) => {
      exemptions.push({ keyId: parseId(text) });
    })
    .option('--until <time>', 'end of the exemptions before it, ISO 8601', (text) => {
      const until = readTime(text);
      const open = exemptions.filter((exemption) => exemption.until === undefined);
      if (open.length === 0) {
        throw new InvalidArgumentError('It ends the --exempt-org and --exempt-key before it: there is none.');
      }
      for (const exemption of open) exemption.until = until;
    });
  return exemptions;
}
