import type { Cluster, Redis } from 'ioredis';

/** A script of an organization, as a client is taught it. */
interface Script {
  /** With its `#!lua` line. */
  lua: string;
  readOnly?: boolean;
  /** What it replies is JSON, and what the command resolves to is what that says. */
  json?: boolean;
}

/**
 * Teaches a client a script of an organization under this name; its first argument is the organization's base.
 *
 * A script derives its keys from the base, and a cluster sees declared keys only. While a slot moves from one
 * node to another, its keys are on either side; with only the base declared, which never exists, the script would
 * be sent to the new side (ASK) and run there, taking whatever has not arrived yet for absent. So a second key that
 * never exists is declared too: of several keys not all there the new side says TRYAGAIN, and runs nothing.
 */
export function defineScript(
  client: Redis | Cluster,
  name: string,
  { lua, readOnly = false, json = false }: Script,
): void {
  // ioredis' pipelines call what was defined, with both keys; everybody else calls the name, with the base.
  const defined = `${name}:`;
  client.defineCommand(defined, { numberOfKeys: 2, lua, readOnly });
  const commands = client as unknown as Record<string, (...parts: unknown[]) => Promise<unknown>>;
  commands[name] = (base, ...rest) => {
    const run = commands[defined];
    if (run === undefined) throw new Error(`${name} is not defined`);
    const reply = run.call(client, base, `${String(base)}-`, ...rest);
    return json ? reply.then((text) => JSON.parse(text as string) as unknown) : reply;
  };
}
