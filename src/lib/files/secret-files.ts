import { readFileSync } from 'node:fs';

/**
 * Secrets from files: for each name, `NAME_FILE` is the path of a file whose content, without its final line break,
 * becomes `NAME`. Returns a copy of the environment with them, and one line for each file that cannot be used.
 */
export function readSecretFiles(
  env: NodeJS.ProcessEnv,
  names: readonly string[],
): { env: NodeJS.ProcessEnv; mistakes: string[] } {
  const resolved = { ...env };
  const mistakes: string[] = [];
  for (const name of names) {
    const variable = `${name}_FILE`;
    const file = env[variable]?.trim();
    if (file === undefined || file === '') continue;
    if ((env[name]?.trim() ?? '') !== '') {
      mistakes.push(`${variable}: ${name} is set as well; set only one of them`);
      continue;
    }
    try {
      resolved[name] = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      mistakes.push(`${variable}: ${file} cannot be read (${code}); check the path and its permissions`);
      continue;
    }
    if (resolved[name]?.trim() === '') mistakes.push(`${variable}: ${file} is empty`);
  }
  return { env: resolved, mistakes };
}
