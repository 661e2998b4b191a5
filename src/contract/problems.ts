import type { Problem as ProblemBody, ProblemCode } from './types.gen.ts';

export type { ProblemBody, ProblemCode };

interface ProblemKind {
  status: number;
  title: string;
  /** The cause, as the documentation explains it. */
  when: string;
  /** What the caller can do. */
  remedy: string;
}

/** Every problem the service can report, by its stable code. Clients may rely on the code, not on the texts. */
export const problemKinds = {
  'malformed-request': {
    status: 400,
    title: 'Malformed request',
    when: 'The bytes received are not a valid HTTP request, or the Host header is missing.',
    remedy: 'Send HTTP/1.1 with a Host header. Look for a proxy that rewrites requests.',
  },
  'invalid-json': {
    status: 400,
    title: 'Invalid JSON',
    when: 'The body is missing, is not well-formed JSON, or is not encoded as UTF-8.',
    remedy: 'Send one well-formed JSON value in UTF-8.',
  },
  'invalid-body': {
    status: 400,
    title: 'Invalid body',
    when: 'The body is JSON but does not match the schema of the operation.',
    remedy: 'Correct the places listed in errors.',
  },
  'invalid-multipart': {
    status: 400,
    title: 'Invalid upload',
    when: 'The multipart body is malformed, has no file or more than one, or also sets profilePictureObjectDefinitionId.',
    remedy: 'Send exactly one file, text parts in UTF-8, and no profilePictureObjectDefinitionId.',
  },
  'missing-credentials': {
    status: 401,
    title: 'Missing credentials',
    when: 'The API key header or the organization header is missing or empty.',
    remedy: 'Send both headers with every request.',
  },
  'invalid-api-key': {
    status: 401,
    title: 'Invalid API key',
    when: 'The API key is unknown, revoked or expired, or belongs to another organization. The response does not say which.',
    remedy: 'Check the key and the organization ID, or ask the operator for a new key.',
  },
  'admin-required': {
    status: 403,
    title: 'Admin key required',
    when: 'A denylist operation was requested with a player key.',
    remedy: 'Use an API key with the admin role.',
  },
  'no-user': {
    status: 403,
    title: 'API key without a user',
    when: 'A profile operation was requested with an API key that is not bound to a user.',
    remedy: 'Use the API key of the player whose profile you want.',
  },
  'profile-not-found': {
    status: 404,
    title: 'Profile not found',
    when: 'The user has no profile yet.',
    remedy: 'Create it with PUT; an empty object is enough.',
  },
  'not-found': {
    status: 404,
    title: 'Not found',
    when: 'The path does not exist.',
    remedy: 'Compare the path with the documentation.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'Method not allowed',
    when: 'The path exists but does not support this method.',
    remedy: 'Use a method listed in the Allow header.',
  },
  'request-timeout': {
    status: 408,
    title: 'Request timeout',
    when: 'The headers or the body did not arrive in time.',
    remedy: 'Send the request again; this is safe. On a very slow connection, send less.',
  },
  'username-taken': {
    status: 409,
    title: 'Username taken',
    when: 'Another user of the organization has this username.',
    remedy: 'Choose another username.',
  },
  'usernames-in-use': {
    status: 409,
    title: 'Usernames in use',
    when: 'Some of the given usernames are in use. The denylist was not changed.',
    remedy: 'Ban and replace the names listed in usernamesInUse, then send the list again.',
  },
  sunset: {
    status: 410,
    title: 'Service retired',
    when: 'The sunset date has passed and the operator has switched the service off.',
    remedy: 'Use the successor given in the Link header.',
  },
  brownout: {
    status: 410,
    title: 'Scheduled brownout',
    when: 'The operator has switched the deprecated service off temporarily, so that remaining callers notice.',
    remedy: 'Retry after the time in Retry-After, and move to the successor given in the Link header.',
  },
  'payload-too-large': {
    status: 413,
    title: 'Payload too large',
    when: 'The body, or the file in it, exceeds the limit of this operation.',
    remedy: 'Send a smaller body; a picture may have up to 5 MiB.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'Unsupported media type',
    when: 'The operation does not accept this Content-Type, or the content of the file is not JPEG, PNG, WebP or GIF.',
    remedy: 'Send a documented type. The type of a picture is detected from its content, not from its name.',
  },
  'username-not-allowed': {
    status: 422,
    title: 'Username not allowed',
    when: "The username violates the organization's rules on length or characters.",
    remedy: 'Choose a username that follows them.',
  },
  'username-denied': {
    status: 422,
    title: 'Username denied',
    when: "The username is on the organization's denylist.",
    remedy: 'Choose another username.',
  },
  'object-not-found': {
    status: 422,
    title: 'Object not found',
    when: 'The object reference is unknown in this organization.',
    remedy: 'Check datasourceId and objectDefinitionId.',
  },
  'object-not-in-collection': {
    status: 422,
    title: 'Object not in collection',
    when: "The organization requires ownership, and the object is not in the user's collection.",
    remedy: "Choose an object from the user's collection.",
  },
  'invalid-image': {
    status: 422,
    title: 'Invalid image',
    when: 'The file cannot be decoded as a picture, or it has more than 40,000,000 pixels.',
    remedy: 'Send an intact picture of reasonable size.',
  },
  'rate-limited': {
    status: 429,
    title: 'Rate limit exceeded',
    when: 'More requests arrived with this API key than the operator allows, or too many authentications from this address failed.',
    remedy: 'Wait for the time in Retry-After.',
  },
  'headers-too-large': {
    status: 431,
    title: 'Request headers too large',
    when: 'The request headers exceed 16 KiB.',
    remedy: 'Send fewer or shorter headers.',
  },
  'internal-error': {
    status: 500,
    title: 'Internal error',
    when: 'The service failed unexpectedly.',
    remedy: 'Report the requestId to the operator.',
  },
  'legacy-unavailable': {
    status: 502,
    title: 'Legacy service unavailable',
    when: 'Requests are still forwarded to the legacy service, and it could not be reached or broke the connection.',
    remedy: 'Retry with increasing delays. Sending the same request again is safe.',
  },
  'store-unavailable': {
    status: 503,
    title: 'Store unavailable',
    when: 'Redis or the picture store is unreachable, full, or too slow to respond in time.',
    remedy: 'Retry after the time in Retry-After. Sending the same request again is safe.',
  },
  overloaded: {
    status: 503,
    title: 'Service overloaded',
    when: 'This instance has too many concurrent requests, or a change of the denylist blocks this one.',
    remedy: 'Retry after the time in Retry-After, with increasing delays.',
  },
  'replay-unavailable': {
    status: 503,
    title: 'Replay unavailable',
    when: 'During a cut-over: changes are recorded for the legacy service, and too many of the organization wait for it already.',
    remedy: 'Retry with increasing delays. Sending the same request again is safe.',
  },
  'legacy-timeout': {
    status: 504,
    title: 'Legacy service timeout',
    when: 'Requests are still forwarded to the legacy service, and it did not answer in time.',
    remedy: 'Retry with increasing delays. Sending the same request again is safe.',
  },
} as const satisfies Record<ProblemCode, ProblemKind>;

/** What some problems carry in addition to their text. */
export interface ProblemExtras extends Pick<ProblemBody, 'errors' | 'usernamesInUse'> {
  /** 429, 503 and `brownout`: whole seconds to wait before a retry; 1 by default. */
  retryAfterSeconds?: number;
  /** `method-not-allowed`: the allowed methods. */
  allow?: readonly string[];
}

/** A problem before it is rendered for a request. */
export interface Problem extends Omit<ProblemBody, 'type' | 'requestId'> {
  /** The response headers that belong to this problem. */
  headers: Readonly<Record<string, string>>;
}

function headersOf(code: ProblemCode, extras: ProblemExtras): Record<string, string> {
  const { status } = problemKinds[code];
  // 404, 405 and 410 are cacheable by default (RFC 9110 §15.1).
  const headers: Record<string, string> = { 'Cache-Control': 'private, no-store' };
  if (status === 401) headers['WWW-Authenticate'] = 'ApiKey realm="profile-bridge"';
  if (status === 405) headers.Allow = (extras.allow ?? []).join(', ');
  if (status === 429 || status === 503 || code === 'brownout') {
    headers['Retry-After'] = String(Math.max(1, Math.ceil(extras.retryAfterSeconds ?? 1)));
  }
  return headers;
}

/**
 * A problem as plain data. `detail` says in one sentence what is wrong with this request. The headers include those
 * that the status requires: `Allow` (RFC 9110 §15.5.6), `WWW-Authenticate` (§15.5.2), `Retry-After` (§10.2.3), and
 * `Cache-Control: private, no-store`.
 */
export function problem(code: ProblemCode, detail: string, extras: ProblemExtras = {}): Problem {
  const { status, title } = problemKinds[code];
  const { errors, usernamesInUse } = extras;
  return {
    title,
    status,
    detail,
    code,
    ...(errors && { errors }),
    ...(usernamesInUse && { usernamesInUse }),
    headers: headersOf(code, extras),
  };
}

/** Thrown to respond with a problem; takes what `problem` does. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly problem: Problem;

  constructor(...given: Parameters<typeof problem>) {
    super(`${given[0]}: ${given[1]}`);
    this.problem = problem(...given);
  }
}

/** The problem's type (RFC 9457 §3.1.1): a link to its explanation in the documentation at `baseUrl`. */
export function problemType(code: ProblemCode, baseUrl = ''): string {
  return `${baseUrl}/docs/#problem-${code}`;
}

/** The body to send as `application/problem+json` (RFC 9457). */
export function renderProblem(carried: Problem, requestId: string, baseUrl = ''): ProblemBody {
  const { title, status, detail, code, errors, usernamesInUse } = carried;
  return {
    type: problemType(code, baseUrl),
    title,
    status,
    detail,
    code,
    requestId,
    ...(errors && { errors }),
    ...(usernamesInUse && { usernamesInUse }),
  };
}
