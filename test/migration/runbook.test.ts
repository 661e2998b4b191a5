import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { createTool, newFolder, writeSource, type Tool } from '../support/tools/migrate.ts';

/** A command of the runbook with the output that it shows. */
interface Sample {
  command: string;
  output: string;
  isRehearsal: boolean;
}

function samplesOf(runbook: string): Sample[] {
  return [...runbook.matchAll(/^```console\n(.*?)^```$/gms)].flatMap(([, block = '']) => {
    const isRehearsal = block.includes('export KEY_PREFIX=rehearsal:');
    return [...block.matchAll(/^\$ profile-bridge migrate (.*)\n((?:(?!\$ ).*\n)*)/gm)].map(
      ([, command = '', output = '']) => ({ command, output, isRehearsal }),
    );
  });
}

/** What a sample shows as a pattern: a line with nothing but an ellipsis stands for any lines. */
function patternOf(output: string): RegExp {
  const pattern = output
    .replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
    .replaceAll(/legacy-[0-9a-f]{8}/g, 'legacy-[0-9a-f]{8}')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:]+\\\.\d{3}Z/g, String.raw`\S+Z`)
    .replaceAll(/^…\n/gm, '(?:.*\n)*?');
  return new RegExp(`^${pattern}$`);
}

interface Profile {
  organizationId: string;
  userId?: string;
  username: string;
}

function legacyProfiles(): Profile[] {
  const profiles: Profile[] = [];
  for (let number = 1; number <= 1200; number += 1) {
    const username = number === 42 || number === 78 ? 'ada' : `player${number}`;
    profiles.push({ organizationId: 'acme', userId: `u${number}`, username });
  }
  return [...profiles, { organizationId: 'acme', username: 'nobody' }];
}

test('the commands of the runbook, run in order, print what it shows', async () => {
  const folder = newFolder();
  const legacy = join(folder, 'legacy');
  mkdirSync(legacy);
  const [main, rehearsal] = [createTool(), createTool()];
  const write = (profiles: readonly Profile[]): void => {
    writeSource({ profiles, organizations: [{ organizationId: 'acme' }], denylist }, legacy);
  };
  const denylist = [{ organizationId: 'acme', username: 'player7' }];
  write(legacyProfiles());
  const corrected = legacyProfiles()
    .filter(({ userId }) => userId !== undefined && userId !== 'u78' && userId !== 'u5')
    .map((profile) => (profile.userId === 'u9' ? { ...profile, username: 'nine' } : profile));
  /** What happens to the source before a command. */
  const changes: Record<string, () => void> = {
    'verify --source legacy': () => write(corrected),
    'apply --source legacy --prune': () => write(corrected.slice(0, 400)),
  };
  const run = async (tool: Tool, command: string): Promise<string> => {
    const words = command.split(' ');
    const args = words.map((word) =>
      ['legacy', 'backup', 'refused.ndjson'].includes(word) ? join(folder, word) : word,
    );
    const { out, err, ...asked } = await tool.answering('y', ...args);
    const question = asked.question === '' ? '' : `${asked.question}y\n`;
    return (question + out + err)
      .replaceAll(`${folder}/`, '')
      .replaceAll(main.prefix, 'pb:')
      .replaceAll(rehearsal.prefix, 'rehearsal:');
  };
  const samples = samplesOf(readFileSync('src/migration/README.md', 'utf8'));
  for (const { command, output, isRehearsal } of samples) {
    if (command.includes('postgres://')) continue;
    if (!isRehearsal) changes[command]?.();
    expect(`$ ${command}\n${await run(isRehearsal ? rehearsal : main, command)}`).toMatch(
      new RegExp(`^\\$ ${command}\n${patternOf(output).source.slice(1)}`),
    );
  }
  expect(samples.length).toBeGreaterThan(8);
});
