/** The five operations of the contract, by their operationId in openapi.yaml. */
export type Operation =
  'getProfile' | 'putProfile' | 'banUsernames' | 'removeDeniedUsernames' | 'overwriteDenylist';

export interface Route {
  operation: Operation;
  method: 'get' | 'put' | 'post' | 'delete';
  /** As the contract writes it. It answers without its trailing slash too. */
  path: string;
}

/** Every route of the contract (README.md, section 4). */
export const routes: readonly Route[] = [
  { operation: 'getProfile', method: 'get', path: '/api/profile/' },
  { operation: 'putProfile', method: 'put', path: '/api/profile/' },
  { operation: 'banUsernames', method: 'post', path: '/api/profile/username/deny/' },
  { operation: 'removeDeniedUsernames', method: 'delete', path: '/api/profile/username/deny/' },
  { operation: 'overwriteDenylist', method: 'put', path: '/api/profile/username/denylist/' },
];

/** Both forms of a contract path. */
function bothForms(path: string): [string, string] {
  return [path, path.slice(0, -1)];
}

/** Every path of the contract, in both forms, and what answers there by method; HEAD answers where GET does. */
export const operationsByPath: ReadonlyMap<string, ReadonlyMap<string, Operation>> = (() => {
  const byPath = new Map<string, Map<string, Operation>>();
  for (const { operation, method, path } of routes) {
    for (const form of bothForms(path)) {
      const byMethod = byPath.get(form) ?? new Map<string, Operation>();
      byMethod.set(method.toUpperCase(), operation);
      if (method === 'get') byMethod.set('HEAD', operation);
      byPath.set(form, byMethod);
    }
  }
  return byPath;
})();
