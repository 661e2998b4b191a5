import { infoField } from './client.ts';

/**
 * Why the bridge cannot use this server, by its INFO (managed services refuse CONFIG), as one line with the remedy.
 * Required are a master, Redis 7.0 or Valkey 7.2 (for scripts with flags), and a memory policy that never evicts.
 */
export function checkRequirements(
  info: string,
  where: string,
  expected: { cluster: boolean; allowEviction: boolean },
): string | undefined {
  const fact = (name: string): string | undefined => infoField(info, name);
  // Valkey calls it by another name.
  const mode = fact('redis_mode') ?? fact('server_mode');
  if (mode === 'sentinel') {
    return `${where} is a Sentinel, not a store: write REDIS_URL as redis+sentinel://host:port/NAME`;
  }
  if (mode === 'cluster' && !expected.cluster) {
    return `${where} is a node of a cluster: write REDIS_URL as redis+cluster://host:port`;
  }
  if (fact('role') === 'slave') {
    if (expected.cluster)
      return `${where} is no longer a master: wait for the failover to end, then try again`;
    return `${where} is a read-only replica: set REDIS_URL to its master (${fact('master_host')}:${fact('master_port')})`;
  }
  const valkey = fact('valkey_version');
  const version = valkey ?? fact('redis_version') ?? 'unknown';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const needed = valkey === undefined ? 7 : 7.2;
  if (!(major + minor / 10 >= needed)) {
    return `${where} is ${valkey === undefined ? 'Redis' : 'Valkey'} ${version}: upgrade it to Redis 7.0, Valkey 7.2 or newer`;
  }
  const policy = fact('maxmemory_policy');
  if (policy !== 'noeviction' && policy !== undefined && !expected.allowEviction) {
    return `${where} may throw profiles away (maxmemory-policy is ${policy}): set it to noeviction, or start with ALLOW_EVICTION=1 to accept the loss`;
  }
  return undefined;
}
