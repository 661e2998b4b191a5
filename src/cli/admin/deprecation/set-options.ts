import { InvalidArgumentError, type Command } from 'commander';
import {
  settingParsers,
  type Exempt,
  type PolicyLayer,
  type Setting,
} from '../../../deprecation/policy/policy.ts';
import { formatInstant, formatInterval, parseInterval } from '../../../lib/iso8601.ts';
import { shellWord } from '../../../lib/system/terminal.ts';
import { parseId } from '../../command-line.ts';
import { argument, parseTime } from '../options.ts';

/** The options that set or clear one setting each. */
export const settingOptions: readonly [setting: Setting, flag: string, value: string, what: string][] = [
  ['deprecatedAt', '--deprecated-at', '<time>', 'date of the deprecation'],
  ['sunsetAt', '--sunset', '<time>', 'date from which the API may be gone'],
  ['successorUrl', '--successor', '<url>', 'link to what replaces the API'],
  ['documentationUrl', '--documentation', '<url>', 'link to the documentation of the deprecation'],
  ['afterSunset', '--after-sunset', '<serve|gone>', 'whether calls after the sunset are served, or get 410'],
];

/** What the options of `deprecation set` give, filled while the command line is parsed. */
export interface Given {
  layer: PolicyLayer & Required<Pick<PolicyLayer, 'brownouts' | 'exemptions'>>;
  /** Exemptions that no `--until` has followed. */
  endless: Exempt[];
}

/** Adds the options of `deprecation set`. An `--until` applies to all exemptions before it that have none yet. */
export function addSetOptions(command: Command): Given {
  const given: Given = { layer: { brownouts: [], exemptions: [] }, endless: [] };
  const { layer, endless } = given;
  for (const [setting, flag, value, what] of settingOptions) {
    const parse = argument<number | string>(settingParsers[setting]);
    const description = value === '<time>' ? `${what}, ISO 8601` : what;
    command.option(`${flag} ${value}`, description, (text) => {
      Object.assign(layer, { [setting]: parse(text) });
    });
  }
  command
    .option(
      '--brownout <period>',
      'brownout, during which calls are answered with 410: START/DURATION such as 2027-01-31T12:00:00Z/PT30M, or START/END; repeatable',
      (text) => layer.brownouts.push(argument(parseInterval)(text)),
    )
    .option(
      '--exempt-org <organization>',
      'organization exempt from brownouts and sunset; repeatable',
      (text) => endless.push({ organizationId: parseId(text) }),
    )
    .option(
      '--exempt-key <key-id>',
      'public id of a key exempt from brownouts and sunset; repeatable',
      (text) => endless.push({ keyId: parseId(text) }),
    )
    .option(
      '--until <time>',
      'end of the --exempt-org and --exempt-key options before it that have none yet, ISO 8601',
      (text) => {
        const until = parseTime(text);
        if (endless.length === 0) {
          throw new InvalidArgumentError('It must follow the --exempt-org or --exempt-key that it ends.');
        }
        layer.exemptions.push(...endless.splice(0).map((exempt) => ({ ...exempt, until })));
      },
    );
  return given;
}

/**
 * The options of `deprecation set` that create this layer, for a POSIX shell. Brownouts and exemptions that are over at
 * `now` (ms) are left out, as they would be refused; empty if nothing is left.
 */
export function formatSetOptions(
  { brownouts = [], exemptions = [], ...layer }: PolicyLayer,
  now: number,
): string {
  const words = [
    ...settingOptions.flatMap(([setting, flag]) => {
      const value = layer[setting];
      return value === undefined ? [] : [flag, typeof value === 'number' ? formatInstant(value) : value];
    }),
    ...brownouts
      .filter(({ end }) => end > now)
      .flatMap((brownout) => ['--brownout', formatInterval(brownout)]),
    ...exemptions
      .filter(({ until }) => until > now)
      .flatMap((exemption) => [
        ...('keyId' in exemption
          ? ['--exempt-key', exemption.keyId]
          : ['--exempt-org', exemption.organizationId]),
        '--until',
        formatInstant(exemption.until),
      ]),
  ];
  return words.map(shellWord).join(' ');
}
