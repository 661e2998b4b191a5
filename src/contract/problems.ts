import type { BodyError, ProblemCode, Problem as ProblemBody } from './types.gen.ts';

export type { ProblemBody, ProblemCode };

interface ProblemKind {
  status: number;
  title: string;
  when: string;
  remedy: string;
}

/** Every problem the service can answer with, by its stable code. Clients may branch on the code, never on the text. */
export const problemKinds = {
  'malformed-request': {
    status: 400,
    title: 'The request is malformed',
    when: 'What was sent is no HTTP request, or lacks its Host header.',
    remedy: 'Send HTTP/1.1, through a proxy or a client that keeps to it.',
  },
  'invalid-json': {
    status: 400,
    title: 'The body is not JSON',
    when: 'The request body could not be read as JSON in UTF-8, or it is missing.',
    remedy: 'Send one well-formed JSON value, encoded as UTF-8.',
  },
  'invalid-body': {
    status: 400,
    title: 'The body breaks the contract',
    when: 'The body is JSON, but not of the documented shape, or a name breaks the hard limits of names.',
    remedy: 'Correct the places listed in errors.',
  },
  'invalid-multipart': {
    status: 400,
    title: 'The upload is not usable',
    when: 'The multipart body is broken, holds no file or more than one, or sets the picture twice.',
    remedy: 'Send exactly one file, and no profilePictureObjectDefinitionId beside it.',
  },
  'missing-credentials': {
    status: 401,
    title: 'Credentials are missing',
    when: 'The API key header or the organization header is absent or empty.',
    remedy: 'Send both headers with every request.',
  },
  'invalid-api-key': {
    status: 401,
    title: 'The API key is not valid',
    when: 'The key is unknown, revoked, expired, or belongs to another organization; the answer does not tell which.',
    remedy: 'Check the key and the organization, or ask the operator for a new key.',
  },
  'admin-required': {
    status: 403,
    title: 'An admin key is required',
    when: 'A player key was used on a denylist operation.',
    remedy: 'Use a key with the admin role.',
  },
  'no-user': {
    status: 403,
    title: 'The API key acts for no user',
    when: 'A key that is bound to no user was used on a profile operation.',
    remedy: 'Use the key of the player whose profile is meant.',
  },
  'profile-not-found': {
    status: 404,
    title: 'There is no profile yet',
    when: 'The user has no profile yet.',
    remedy: 'Create it with a PUT; an empty object is enough.',
  },
  'not-found': {
    status: 404,
    title: 'There is nothing here',
    when: 'The path is none of this service.',
    remedy: 'Check the path against the documentation.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'The method is not allowed here',
    when: 'The path exists, but not with this method.',
    remedy: 'Use one of the methods in the Allow header.',
  },
  'request-timeout': {
    status: 408,
    title: 'The request took too long',
    when: 'The headers did not arrive within 20 seconds, or the whole request not within 60; both are looked at every 30 seconds.',
    remedy: 'Send the request without pauses; sending it again is safe.',
  },
  'username-taken': {
    status: 409,
    title: 'The username is taken',
    when: 'Another user of the organization has this username.',
    remedy: 'Choose another username.',
  },
  'usernames-in-use': {
    status: 409,
    title: 'Usernames are in use',
    when: 'Some of the given usernames are in use; the denylist was left as it was.',
    remedy: 'Ban and replace the names listed in usernamesInUse, then send the list again.',
  },
  sunset: {
    status: 410,
    title: 'The service has been retired',
    when: 'The sunset date has passed and the operator has switched the service off.',
    remedy: 'Move to the successor named in the Link header.',
  },
  brownout: {
    status: 410,
    title: 'The service is switched off for a while',
    when: 'The operator switched the deprecated service off for a while, so that forgotten callers are noticed.',
    remedy: 'Try again after Retry-After, and move to the successor named in the Link header.',
  },
  'payload-too-large': {
    status: 413,
    title: 'The body is too large',
    when: 'The body, or the file in it, is larger than this operation accepts.',
    remedy: 'Send less: a picture may have up to 5 MiB.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'The media type is not supported',
    when: 'The Content-Type is none this operation reads, or the file is not JPEG, PNG, WebP or GIF by its bytes.',
    remedy: 'Send one of the documented types; a file name or a declared type does not make a picture.',
  },
  'username-not-allowed': {
    status: 422,
    title: 'The username is not allowed',
    when: "The username breaks the length or the pattern of the organization's settings.",
    remedy: 'Choose a username that keeps to them.',
  },
  'username-denied': {
    status: 422,
    title: 'The username is denied',
    when: "The username is on the organization's denylist.",
    remedy: 'Choose another username.',
  },
  'object-not-found': {
    status: 422,
    title: 'The object does not exist',
    when: 'The reference names no object the organization knows.',
    remedy: 'Check datasourceId and objectDefinitionId.',
  },
  'object-not-in-collection': {
    status: 422,
    title: 'The object is not in the collection',
    when: "The organization demands ownership, and the object is not in the user's collection.",
    remedy: "Choose an object of the user's collection.",
  },
  'invalid-image': {
    status: 422,
    title: 'The image cannot be read',
    when: 'The file starts like a picture but does not decode, or has more than 40,000,000 pixels.',
    remedy: 'Send a whole picture of reasonable size.',
  },
  'rate-limited': {
    status: 429,
    title: 'Too many requests',
    when: 'The operator configured a rate limit, and this client exceeded it.',
    remedy: 'Wait as long as Retry-After says.',
  },
  'headers-too-large': {
    status: 431,
    title: 'The headers are too large',
    when: 'The headers of the request have more than 16 KiB.',
    remedy: 'Send fewer or shorter headers.',
  },
  'internal-error': {
    status: 500,
    title: 'Something broke',
    when: 'A mistake in the service itself.',
    remedy: 'Tell the operator the requestId.',
  },
  'store-unavailable': {
    status: 503,
    title: 'The store is not available',
    when: 'The store is away, full, or too slow to answer in time.',
    remedy: 'Try again after Retry-After; sending the same request again is safe.',
  },
  overloaded: {
    status: 503,
    title: 'The service is overloaded',
    when: 'The process has more to do than it can answer in time.',
    remedy: 'Try again after Retry-After, with growing pauses.',
  },
} as const satisfies Record<ProblemCode, ProblemKind>;

/** What some problems carry besides their text. */
export interface ProblemExtras {
  /** `invalid-body`: the broken rules. */
  errors?: BodyError[];
  /** `usernames-in-use`: the names in question, in the request's spelling. */
  usernamesInUse?: string[];
  /** 429, 503 and `brownout`: whole seconds until a retry makes sense. */
  retryAfterSeconds?: number;
  /** `method-not-allowed`: the methods that are. */
  allow?: readonly string[];
  /** Further response headers, such as the RateLimit fields; they win over the standard ones. */
  headers?: Readonly<Record<string, string>>;
}

export interface Problem {
  code: ProblemCode;
  status: number;
  title: string;
  detail: string;
  errors?: BodyError[];
  usernamesInUse?: string[];
  /** The response headers this problem demands. */
  headers: Readonly<Record<string, string>>;
}

const defaultRetrySeconds = 1;

function headersOf(code: ProblemCode, extras: ProblemExtras): Record<string, string> {
  const { status } = problemKinds[code];
  // No problem is worth a cache's while: 404, 405 and 410 would otherwise be cacheable by default (RFC 9111 §4.2.2).
  const headers: Record<string, string> = { 'Cache-Control': 'private, no-store' };
  if (status === 401) headers['WWW-Authenticate'] = 'ApiKey realm="profile-bridge"';
  if (status === 405) headers.Allow = (extras.allow ?? []).join(', ');
  if (status === 429 || status === 503 || code === 'brownout') {
    const seconds = extras.retryAfterSeconds ?? defaultRetrySeconds;
    headers['Retry-After'] = String(Math.max(1, Math.ceil(seconds)));
  }
  return { ...headers, ...extras.headers };
}

/**
 * A problem as plain data, ready to be answered: `detail` says what is wrong with this very request, in one sentence.
 * Its headers hold what the status demands: `Allow` (RFC 9110 §15.5.6), `WWW-Authenticate` (§15.5.2), `Retry-After`
 * (§10.2.3), and `Cache-Control: private, no-store`.
 */
export function problem(code: ProblemCode, detail: string, extras: ProblemExtras = {}): Problem {
  const { status, title } = problemKinds[code];
  return {
    code,
    status,
    title,
    detail,
    ...(extras.errors && { errors: extras.errors }),
    ...(extras.usernamesInUse && { usernamesInUse: extras.usernamesInUse }),
    headers: headersOf(code, extras),
  };
}

/** Thrown by handlers to answer with a problem. */
export class ProblemError extends Error {
  readonly problem: Problem;

  constructor(carried: Problem) {
    super(`${carried.code}: ${carried.detail}`);
    this.name = 'ProblemError';
    this.problem = carried;
  }
}

/** The problem's type: a reference into the documentation page, which explains it there (RFC 9457 §3.1.1). */
export function problemType(code: ProblemCode): string {
  return `/docs/#problem-${code}`;
}

/** The JSON object to send as `application/problem+json` (RFC 9457). */
export function renderProblem(carried: Problem, requestId: string): ProblemBody {
  const { code, status, title, detail, errors, usernamesInUse } = carried;
  return {
    type: problemType(code),
    title,
    status,
    detail,
    code,
    requestId,
    ...(errors && { errors }),
    ...(usernamesInUse && { usernamesInUse }),
  };
}
