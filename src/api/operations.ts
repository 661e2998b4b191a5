import type { Operation } from '../contract/operations.ts';
import { getOrInsert } from '../lib/collections/get-or-insert.ts';
import { readOwnProfile } from '../redis/profiles.ts';
import { authenticate, type AuthenticationOutcome } from '../redis/changes.ts';
import type { Authenticate, AuthenticatedCaller } from './middleware/authentication.ts';
import { createDenylistHandlers } from './denylist/handlers.ts';
import { listBody, parseReplacements, parseUsernames } from './denylist/list-body.ts';
import type { BodyReader } from './middleware/receive-body.ts';
import { createProfileHandlers, profileBody, type ProfileOptions } from './profile/handlers.ts';
import type { Answer } from './respond.ts';

/** One operation of the contract (section 4). */
export interface Row<Outcome = AuthenticationOutcome, Body = unknown> {
  operation: Operation;
  method: 'get' | 'put' | 'post' | 'delete';
  /** The path in the contract; the operation answers without the trailing slash too. */
  path: string;
  /** The denylist operations are for admin keys (contract 5), the others for keys of any role. */
  role: 'admin' | 'any';
  /** Whether it acts on the profile of the key's user. */
  needsUser: boolean;
  authenticate: Authenticate<Outcome>;
  /** Undefined if the operation has none. */
  body: BodyReader<Body> | undefined;
  handler: (authenticated: AuthenticatedCaller<Outcome>, body: Body) => Promise<Answer> | Answer;
}

export interface OperationOptions extends ProfileOptions {
  /** The largest JSON body of a denylist operation, in bytes. */
  maxListBytes: number;
}

/** Every operation of the contract is a row. */
export function createOperations(options: OperationOptions): Row[] {
  const { maxListBytes } = options;
  const profile = createProfileHandlers(options);
  const denylist = createDenylistHandlers(options.store);
  return [
    defineRow({
      operation: 'getProfile',
      method: 'get',
      path: '/api/profile/',
      role: 'any',
      needsUser: true,
      // The profile comes with the caller: a single round trip.
      authenticate: readOwnProfile,
      body: undefined,
      handler: profile.getProfile,
    }),
    defineRow({
      operation: 'putProfile',
      method: 'put',
      path: '/api/profile/',
      role: 'any',
      needsUser: true,
      authenticate,
      body: profileBody,
      handler: profile.putProfile,
    }),
    defineRow({
      operation: 'banUsernames',
      method: 'post',
      path: '/api/profile/username/deny/',
      role: 'admin',
      needsUser: false,
      authenticate,
      body: listBody(parseReplacements, maxListBytes),
      handler: denylist.banUsernames,
    }),
    defineRow({
      operation: 'removeDeniedUsernames',
      method: 'delete',
      path: '/api/profile/username/deny/',
      role: 'admin',
      needsUser: false,
      authenticate,
      body: listBody(parseUsernames, maxListBytes),
      handler: denylist.removeDeniedUsernames,
    }),
    defineRow({
      operation: 'overwriteDenylist',
      method: 'put',
      path: '/api/profile/username/denylist/',
      role: 'admin',
      needsUser: false,
      authenticate,
      body: listBody(parseUsernames, maxListBytes),
      handler: denylist.overwriteDenylist,
    }),
  ];
}

/** Type-checks that the parts of a row fit together, and then gives all rows one type. */
function defineRow<Outcome, Body>(row: Row<Outcome, Body>): Row {
  return row as unknown as Row;
}

/** The rows by path, with and without its trailing slash, and by method. HEAD works wherever GET does. */
export function byPathAndMethod(rows: readonly Row[]): ReadonlyMap<string, ReadonlyMap<string, Row>> {
  const byPath = new Map<string, Map<string, Row>>();
  for (const row of rows) {
    for (const path of [row.path, row.path.slice(0, -1)]) {
      const byMethod = getOrInsert(byPath, path, () => new Map<string, Row>());
      byMethod.set(row.method.toUpperCase(), row);
      if (row.method === 'get') byMethod.set('HEAD', row);
    }
  }
  return byPath;
}
