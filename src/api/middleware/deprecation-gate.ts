import type { Request, Response } from 'express';
import { ProblemError } from '../../contract/problems.ts';
import {
  isExempt,
  requiresAuthentication,
  verdictAt,
  type DeprecationPolicy,
  type CallVerdict,
} from '../../deprecation/policy/policy.ts';
import { authenticate } from '../../redis/changes.ts';
import { claimedOrganization, openSession, type AuthenticationOptions } from '../authentication.ts';
import { callOf } from '../call.ts';

/** Throws the problem that refuses a request, if any. */
export type Gate = (request: Request, response: Response) => Promise<void>;

/**
 * Refuses requests with 410 during a brownout and after the sunset, before any other work. Callers are authenticated
 * first only if an exemption may apply to them; a caller who fails to authenticate is not exempt.
 */
export function createGate(policy: () => DeprecationPolicy, options: AuthenticationOptions): Gate {
  return async (request, response) => {
    const now = Date.now();
    const verdict = verdictAt(policy(), now);
    if (verdict === 'serve') return;
    const call = callOf(response);
    const claimed = claimedOrganization(request, options.organizationHeader);
    if (claimed !== undefined) call.organizationId = claimed;
    if (!requiresAuthentication(policy(), now, claimed)) {
      call.isUnchecked = claimed !== undefined && Boolean(request.headers['x-api-key']);
    } else {
      await openSession({ authenticate }, request, response, options).catch((error: unknown) => {
        if (!(error instanceof ProblemError)) throw error;
      });
      const { organizationId, caller } = call;
      if (caller !== undefined && isExempt(policy(), now, { organizationId, keyId: caller.keyId })) return;
    }
    throw gone(verdict, now);
  };
}

function gone(verdict: Exclude<CallVerdict, 'serve'>, now: number): ProblemError {
  if (verdict.gone === 'sunset') {
    return new ProblemError('sunset', 'This API has been retired. The Link header names its successor.');
  }
  const detail = 'This deprecated API is switched off temporarily, so that remaining callers notice.';
  return new ProblemError('brownout', detail, { retryAfterSeconds: (verdict.until - now) / 1000 });
}
