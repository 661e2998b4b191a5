import { contractDocument, type ContractDocument } from './document.ts';
import type { Problem as ProblemBody, ProblemCode } from './types.gen.ts';

export type { ProblemBody, ProblemCode };

/** Every problem the service can report, by its stable code. Clients may rely on the code, not on the texts. */
export function problemKinds(): ContractDocument['components']['x-problems'] {
  return contractDocument().components['x-problems'];
}

/** What some problems carry in addition to their text. */
export interface ProblemExtras extends Pick<ProblemBody, 'errors' | 'usernamesInUse'> {
  /** 429, 503 and `brownout`: whole seconds to wait before a retry; 1 by default. */
  retryAfterSeconds?: number;
  /** `method-not-allowed`: the allowed methods. */
  allow?: readonly string[];
}

/** Refuses a request with a problem. `detail` says in one sentence what is wrong with this request. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly code: ProblemCode;
  readonly status: number;
  /**
   * Those that the status requires: `Allow` (RFC 9110 §15.5.6), `WWW-Authenticate` (§15.5.2), `Retry-After` (§10.2.3),
   * and `Cache-Control`, since 404, 405 and 410 are cacheable by default (§15.1).
   */
  readonly headers: Readonly<Record<string, string>>;
  readonly #detail: string;
  readonly #extras: ProblemExtras;

  constructor(code: ProblemCode, detail: string, extras: ProblemExtras = {}) {
    // Nobody reads the stack of a refusal, and capturing it would take longer than all the rest.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(`${code}: ${detail}`);
    Error.stackTraceLimit = stackTraceLimit;
    this.code = code;
    this.status = problemKinds()[code].status;
    this.headers = headersOf(code, this.status, extras);
    this.#detail = detail;
    this.#extras = extras;
  }

  /** The body to send as `application/problem+json` (RFC 9457). */
  toBody(requestId: string, baseUrl = ''): ProblemBody {
    const { code, status } = this;
    const { errors, usernamesInUse } = this.#extras;
    return {
      type: problemType(code, baseUrl),
      title: problemKinds()[code].title,
      status,
      detail: this.#detail,
      code,
      requestId,
      ...(errors && { errors }),
      ...(usernamesInUse && { usernamesInUse }),
    };
  }
}

function headersOf(code: ProblemCode, status: number, extras: ProblemExtras): Record<string, string> {
  const headers: Record<string, string> = { 'Cache-Control': 'private, no-store' };
  if (status === 401) headers['WWW-Authenticate'] = 'ApiKey realm="profile-bridge"';
  if (status === 405) headers.Allow = (extras.allow ?? []).join(', ');
  if (status === 429 || status === 503 || code === 'brownout') {
    headers['Retry-After'] = String(Math.max(1, Math.ceil(extras.retryAfterSeconds ?? 1)));
  }
  return headers;
}

/** The problem's type (RFC 9457 §3.1.1): a link to its explanation in the documentation at `baseUrl`. */
export function problemType(code: ProblemCode, baseUrl = ''): string {
  return `${baseUrl}/docs/#problem-${code}`;
}
