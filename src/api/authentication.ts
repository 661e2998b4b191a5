import type { Request, Response } from 'express';
import { problem, ProblemError } from '../contract/problems.ts';
import type { Caller } from '../domain/caller.ts';
import { authenticate, hashApiKey } from '../redis/credentials.ts';
import { organizationBase } from '../redis/keys.ts';
import type { Store } from '../redis/scripts.ts';
import type { WriteSnapshot } from '../redis/write-snapshot.ts';
import { callOf } from './request-context.ts';
import type { Limiter } from './middleware/rate-limit.ts';

export interface AuthenticationOptions {
  store: Store;
  keyPrefix: string;
  /** Its real name carries the platform's brand (contract 5). */
  organizationHeader: string;
  /** Absent where no rate limit is configured. */
  limiter?: Limiter | undefined;
}

/** What the headers of contract 5 claim. */
export interface Credentials {
  organizationId: string;
  /** What the organization's keys in Redis begin with. */
  base: string;
  sha256: string;
}

/** A caller who has proven to be one. */
export interface Session extends Credentials {
  caller: Caller;
  snapshot: WriteSnapshot;
}

// No byte may be dropped: ids that differ are different organizations.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The organization that a request claims to come from; undefined where it names none, or not in UTF-8. */
export function claimedOrganization(request: Request, organizationHeader: string): string | undefined {
  const value = request.headers[organizationHeader];
  if (typeof value !== 'string' || value === '') return undefined;
  if (/^[\x20-\x7E]+$/.test(value)) return value;
  try {
    return utf8.decode(Buffer.from(value, 'latin1'));
  } catch {
    return undefined;
  }
}

/** Reads both headers; a missing one is a 401 `missing-credentials`. */
export function readCredentials(
  request: Request,
  response: Response,
  { keyPrefix, organizationHeader }: AuthenticationOptions,
): Credentials {
  const apiKey = request.headers['x-api-key'];
  const organizationId = claimedOrganization(request, organizationHeader);
  if (organizationId !== undefined) callOf(response).organizationId = organizationId;
  if (typeof apiKey !== 'string' || apiKey === '') throw missing('x-api-key');
  if (organizationId === undefined) {
    throw request.headers[organizationHeader] ? invalidApiKey() : missing(organizationHeader);
  }
  return {
    organizationId,
    base: organizationBase(keyPrefix, organizationId),
    // Header bytes reach us as Latin-1; taken as such they are the key's own UTF-8 bytes.
    sha256: hashApiKey(Buffer.from(apiKey, 'latin1')),
  };
}

/** Authenticates a request; a key that is not one is a 401 `invalid-api-key`. */
export async function authenticateRequest(
  request: Request,
  response: Response,
  options: AuthenticationOptions,
): Promise<Session> {
  const credentials = readCredentials(request, response, options);
  const outcome = await authenticate(options.store, credentials.base, credentials.sha256);
  if (outcome.kind === 'unknown') throw invalidApiKey();
  await admit(response, credentials.base, outcome.caller, options);
  return { ...credentials, caller: outcome.caller, snapshot: outcome.snapshot };
}

/** Takes note of who calls, and holds them to the rate limit where there is one: once for each request. */
export function admit(
  response: Response,
  base: string,
  caller: Caller,
  { limiter }: AuthenticationOptions,
): Promise<void> | undefined {
  const call = callOf(response);
  const known = call.caller !== undefined;
  call.caller = caller;
  return known ? undefined : limiter?.(response, base, caller.keyId);
}

/** The user whose profile is meant; a key that acts for nobody is a 403 `no-user`. */
export function requireUser(caller: Caller): string {
  if (caller.userId === undefined) throw noUser();
  return caller.userId;
}

/** The denylist is for admins (contract 5): any other key is a 403 `admin-required`. */
export function requireAdmin(caller: Caller): void {
  if (caller.role !== 'admin') {
    throw new ProblemError(problem('admin-required', 'This operation needs an API key with the admin role.'));
  }
}

export function invalidApiKey(): ProblemError {
  return new ProblemError(
    problem('invalid-api-key', 'The API key is not valid for this organization, or not any more.'),
  );
}

export function noUser(): ProblemError {
  return new ProblemError(problem('no-user', 'This API key acts for no user, so it has no profile.'));
}

function missing(header: string): ProblemError {
  return new ProblemError(problem('missing-credentials', `The header ${header} is missing.`));
}
