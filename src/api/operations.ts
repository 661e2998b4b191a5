import type { Operation } from '../contract/operations.ts';
import { readOwnProfile } from '../redis/profiles.ts';
import { authenticate, type AuthenticationOutcome } from '../redis/changes.ts';
import type { Authenticate, Session } from './authentication.ts';
import { createDenylistHandlers } from './denylist/handlers.ts';
import { listBody, parseReplacements, parseUsernames } from './denylist/list-body.ts';
import type { BodyReader } from './middleware/receive-body.ts';
import { createProfileHandlers, profileBody, type ProfileOptions } from './profile/handlers.ts';
import type { Answer } from './respond.ts';

/** One operation of the contract (section 4). */
export interface Row<Outcome = AuthenticationOutcome, Body = unknown> {
  operation: Operation;
  method: 'get' | 'put' | 'post' | 'delete';
  /** As the contract writes it. It answers without its trailing slash too. */
  path: string;
  /** The denylist operations are for admin keys (contract 5); any other operation is for every key. */
  role: 'admin' | 'any';
  /** Whether it acts on the profile of the key's user. */
  needsUser: boolean;
  authenticate: Authenticate<Outcome>;
  /** Undefined if the operation has none. */
  body: BodyReader<Body> | undefined;
  handler: (session: Session<Outcome>, body: Body) => Promise<Answer> | Answer;
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
    row({
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
    row({
      operation: 'putProfile',
      method: 'put',
      path: '/api/profile/',
      role: 'any',
      needsUser: true,
      authenticate,
      body: profileBody,
      handler: profile.putProfile,
    }),
    row({
      operation: 'banUsernames',
      method: 'post',
      path: '/api/profile/username/deny/',
      role: 'admin',
      needsUser: false,
      authenticate,
      body: listBody(parseReplacements, maxListBytes),
      handler: denylist.banUsernames,
    }),
    row({
      operation: 'removeDeniedUsernames',
      method: 'delete',
      path: '/api/profile/username/deny/',
      role: 'admin',
      needsUser: false,
      authenticate,
      body: listBody(parseUsernames, maxListBytes),
      handler: denylist.removeDeniedUsernames,
    }),
    row({
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

/** Checks the types of a row's parts against each other; in the table all rows have one type. */
function row<Outcome, Body>(given: Row<Outcome, Body>): Row {
  return given as unknown as Row;
}

/** The rows by path, in both forms, and method. HEAD works wherever GET does. */
export function byPathAndMethod(rows: readonly Row[]): ReadonlyMap<string, ReadonlyMap<string, Row>> {
  const byPath = new Map<string, Map<string, Row>>();
  for (const one of rows) {
    for (const path of [one.path, one.path.slice(0, -1)]) {
      const byMethod = byPath.get(path) ?? new Map<string, Row>();
      byMethod.set(one.method.toUpperCase(), one);
      if (one.method === 'get') byMethod.set('HEAD', one);
      byPath.set(path, byMethod);
    }
  }
  return byPath;
}
