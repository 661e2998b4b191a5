import type { Request, Response } from 'express';
import type { Operation } from '../contract/operations.ts';
import { problem } from '../contract/problems.ts';
import { toGetView, type MediaUrl } from '../contract/views.ts';
import type { Pictures } from '../media/lifecycle.ts';
import { readOwnProfile, type ReadOutcome } from '../redis/profiles.ts';
import { authenticate, type AuthenticationOutcome } from '../redis/write-snapshot.ts';
import type { Demands, Session } from './authentication.ts';
import { banUsernames, contextOf, overwriteDenylist, removeDeniedUsernames } from './denylist/handlers.ts';
import { createListReader } from './denylist/list-body.ts';
import { putProfile, readProfileBody } from './profile/put-profile.ts';
import type { Answer } from './respond.ts';
import type { RedisClient } from '../redis/connection/client.ts';

/** One operation of the contract (section 4). */
export interface Row<Outcome = AuthenticationOutcome, Body = unknown> extends Demands<Outcome> {
  operation: Operation;
  method: 'get' | 'put' | 'post' | 'delete';
  /** As the contract writes it. It answers without its trailing slash too. */
  path: string;
  /** Reads the body; undefined where the operation has none. */
  body: ((request: Request, response: Response) => Promise<Body>) | undefined;
  handler: (session: Session<Outcome>, body: Body) => Promise<Answer> | Answer;
}

export interface OperationOptions {
  store: RedisClient;
  pictures: Pictures;
  mediaUrl: MediaUrl;
  /** The largest JSON body of a denylist operation, in bytes. */
  maxListBytes: number;
}

/** Every operation of the contract is a row. */
export function createOperations(options: OperationOptions): Row[] {
  const { store, mediaUrl, maxListBytes } = options;
  const lists = createListReader(maxListBytes);
  return [
    row({
      operation: 'getProfile',
      method: 'get',
      path: '/api/profile/',
      role: 'any',
      needsUser: true,
      // The profile comes with the caller: one round trip in all.
      authenticate: readOwnProfile,
      body: undefined,
      handler: (session) => getProfile(session, mediaUrl),
    }),
    row({
      operation: 'putProfile',
      method: 'put',
      path: '/api/profile/',
      role: 'any',
      needsUser: true,
      authenticate,
      body: readProfileBody,
      handler: (session, body) => putProfile(options, session, body),
    }),
    row({
      operation: 'banUsernames',
      method: 'post',
      path: '/api/profile/username/deny/',
      role: 'admin',
      needsUser: false,
      authenticate,
      body: lists.replacements,
      handler: (session, body) => banUsernames(contextOf(store, session), body),
    }),
    row({
      operation: 'removeDeniedUsernames',
      method: 'delete',
      path: '/api/profile/username/deny/',
      role: 'admin',
      needsUser: false,
      authenticate,
      body: lists.usernames,
      handler: (session, body) => removeDeniedUsernames(contextOf(store, session), body),
    }),
    row({
      operation: 'overwriteDenylist',
      method: 'put',
      path: '/api/profile/username/denylist/',
      role: 'admin',
      needsUser: false,
      authenticate,
      body: lists.usernames,
      handler: (session, body) => overwriteDenylist(contextOf(store, session), body),
    }),
  ];
}

/** Checks a row's parts against each other; in the table they have one type. */
function row<Outcome, Body>(given: Row<Outcome, Body>): Row {
  return given as unknown as Row;
}

/** Contract 4.1. */
function getProfile({ found }: Session<ReadOutcome>, mediaUrl: MediaUrl): Answer {
  if (found.kind === 'profile') return { kind: 'json', body: toGetView(found.profile, mediaUrl) };
  return { kind: 'problem', problem: problem('profile-not-found', 'You have no profile yet.') };
}

/** The rows by path, in both forms, and method. HEAD answers where GET does. */
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
