import { readFileSync } from 'node:fs';

/**
 * Reads a secret from the variable `name`, or from the file that `NAME_FILE` names, without the spaces around it. Adds
 * a line to `mistakes` if both are set or the file cannot be used.
 */
export function readSecret(env: NodeJS.ProcessEnv, name: string, mistakes: string[]): string | undefined {
  const variable = `${name}_FILE`;
  const secret = env[name]?.trim() || undefined;
  const file = env[variable]?.trim() || undefined;
  if (file === undefined) return secret;
  if (secret === undefined) return readSecretFile(variable, file, mistakes)?.trim();
  mistakes.push(`${variable}: ${name} is set as well; set only one of them`);
  return secret;
}

/** Reads a file that a variable names, without its final line break; adds a line to `mistakes` if it cannot be used. */
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
