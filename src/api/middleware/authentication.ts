import type { Request, Response } from 'express';
import { ProblemError } from '../../contract/problems.ts';
import type { Caller } from '../../domain/caller.ts';
import { hashApiKey, organizationBase } from '../../redis/keys.ts';
import type { AuthenticationOutcome } from '../../redis/changes.ts';
import { callOf, utf8Header } from '../call.ts';
import type { FailureLimiter } from './rate-limit.ts';
import type { RedisClient } from '../../redis/connection/client.ts';

export interface AuthenticationOptions {
  store: RedisClient;
  keyPrefix: string;
  /** The name of the header with the organization's id, which carries the platform's brand (contract 5). */
  organizationHeader: string;
  /** Absent if failed authentications are not limited. */
  countFailure?: FailureLimiter | undefined;
}

/** The result of looking up a key: unknown, or a caller and further data. */
type Found = { kind: 'unknown' } | { kind: string; caller: Caller };

/** An authenticated caller. */
export interface AuthenticatedCaller<Outcome = AuthenticationOutcome> {
  /** What the organization's keys in Redis begin with. */
  base: string;
  found: Extract<Outcome, { caller: Caller }>;
}

/** Looks a caller up by the SHA-256 of their key, in one round trip. */
export type Authenticate<Outcome> = (store: RedisClient, base: string, sha256: string) => Promise<Outcome>;

/**
 * Authenticates a request (contract 5) and records its caller. Throws a 401 `missing-credentials` or `invalid-api-key`,
 * or a 429 `rate-limited` if too many authentications from this address have failed.
 */
export async function authenticateCaller<Outcome extends Found>(
  authenticate: Authenticate<Outcome>,
  request: Request,
  response: Response,
  options: AuthenticationOptions,
): Promise<AuthenticatedCaller<Outcome>> {
  const { organizationHeader } = options;
  const call = callOf(response);
  const credentials = findCredentials(request, options);
  if (credentials === undefined) {
    recordClaim(request, response, options);
    const missing = ['x-api-key', organizationHeader].find((header) => !request.headers[header]);
    // The organization's id is not UTF-8.
    if (missing === undefined) throw invalidApiKey();
    throw new ProblemError('missing-credentials', `The header ${missing} is missing.`);
  }
  const { organizationId, base, sha256 } = credentials;
  call.organizationId = organizationId;
  call.isUnchecked = true;
  const found = await authenticate(options.store, base, sha256);
  call.isUnchecked = false;
  if (!('caller' in found)) {
    await options.countFailure?.(request, response);
    throw invalidApiKey();
  }
  call.caller = found.caller;
  return { base, found: found as AuthenticatedCaller<Outcome>['found'] };
}

/** Records who a request claims to be, with a key that is not checked yet. */
export function recordClaim(
  request: Request,
  response: Response,
  { organizationHeader }: Pick<AuthenticationOptions, 'organizationHeader'>,
): void {
  const call = callOf(response);
  call.organizationId = claimedOrganization(request, organizationHeader);
  call.isUnchecked = call.organizationId !== undefined && Boolean(request.headers['x-api-key']);
}

/** Throws a 403 `admin-required` or `no-user` if the operation is not for this caller. */
export function requirePermission(
  caller: Caller,
  { role, needsUser }: { role: 'admin' | 'any'; needsUser: boolean },
): void {
  if (role === 'admin' && caller.role !== 'admin') {
    throw new ProblemError('admin-required', 'This operation needs an API key with the admin role.');
  }
  if (needsUser && caller.userId === undefined) {
    throw new ProblemError('no-user', 'This API key acts for no user, so it has no profile.');
  }
}

/** The organization that a request claims to belong to; undefined if the header is missing or not UTF-8. */
function claimedOrganization(request: Request, organizationHeader: string): string | undefined {
  const value = request.headers[organizationHeader];
  if (typeof value !== 'string' || value === '') return undefined;
  return utf8Header(value);
}

/** The credentials of a request; undefined if a header is missing or malformed. */
export function findCredentials(
  request: Request,
  options: Pick<AuthenticationOptions, 'keyPrefix' | 'organizationHeader'>,
) {
  const apiKey = request.headers['x-api-key'];
  const organizationId = claimedOrganization(request, options.organizationHeader);
  if (typeof apiKey !== 'string' || apiKey === '' || organizationId === undefined) return undefined;
  const base = organizationBase(options.keyPrefix, organizationId);
  // Node.js decodes header bytes as Latin-1; encoded as such again, they are the key's UTF-8 bytes.
  return { organizationId, apiKey, base, sha256: hashApiKey(Buffer.from(apiKey, 'latin1')) };
}

function invalidApiKey(): ProblemError {
  const detail = 'The API key is not valid for this organization, or no longer valid.';
  return new ProblemError('invalid-api-key', detail);
}
