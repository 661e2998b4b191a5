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
    if ((env[name]?.trim() ?? '') === '') resolved[name] = readSecretFile(variable, file, mistakes);
    else mistakes.push(`${variable}: ${name} is set as well; set only one of them`);
  }
  return { env: resolved, mistakes };
}

/** The content of the file that a variable names, without its final line break; adds a line to `mistakes` instead. */
export function readSecretFile(variable: string, file: string, mistakes: string[]): string | undefined {
  try {
    const secret = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
    if (secret.trim() !== '') return secret;
    mistakes.push(`${variable}: ${file} is empty`);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    mistakes.push(`${variable}: ${file} cannot be read (${code}); check the path and its permissions`);
  }
  return undefined;
}
