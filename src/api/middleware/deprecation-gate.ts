import type { Request, Response } from 'express';
import { ProblemError } from '../../contract/problems.ts';
import { exemptionsFor, type CallVerdict, type DeprecationPolicy } from '../../deprecation/policy/policy.ts';
import { authenticate } from '../../redis/changes.ts';
import { authenticateCaller, recordClaim, type AuthenticationOptions } from './authentication.ts';
import { callOf } from '../call.ts';

interface GateOptions extends AuthenticationOptions {
  /** Whether there is a legacy service, which also knows keys. */
  hasLegacy: boolean;
}

type Refusal = Exclude<CallVerdict, 'serve'>;

/**
 * Refuses a request with 410 during a brownout and after the sunset, before any other work. Its caller is authenticated
 * first only if an exemption may apply to them; a caller who fails to authenticate is not exempt.
 */
export function createGate(policy: () => DeprecationPolicy, options: GateOptions) {
  return async (verdict: Refusal, now: number, request: Request, response: Response): Promise<void> => {
    recordClaim(request, response, options);
    const call = callOf(response);
    const exemptions = exemptionsFor(policy(), now, call.organizationId);
    if (exemptions.length > 0) {
      const { isUnchecked } = call;
      await authenticateCaller(authenticate, request, response, options).catch((error: unknown) => {
        if (!(error instanceof ProblemError)) throw error;
      });
      const { caller } = call;
      if (caller && exemptions.some((e) => !('keyId' in e) || e.keyId === caller.keyId)) return;
      // The legacy service may know a key that Redis lacks.
      if (options.hasLegacy && caller === undefined) call.isUnchecked = isUnchecked;
    }
    throw gone(verdict, now);
  };
}

function gone(verdict: Refusal, now: number): ProblemError {
  if (verdict.gone === 'sunset') {
    return new ProblemError('sunset', 'This API has been retired. The Link header names its successor.');
  }
  const detail = 'This deprecated API is switched off temporarily, so that remaining callers notice.';
  return new ProblemError('brownout', detail, { retryAfterSeconds: (verdict.until - now) / 1000 });
}
