import type { RequestHandler } from 'express';
import type { FactsInForce } from './notice.ts';
import { docsContentSecurityPolicy, renderDocs } from './page.ts';
import { contractDocument } from '../../contract/document.ts';
import { formatInstant } from '../../lib/iso8601.ts';
import type { DeprecationPolicy } from '../../deprecation/policy/policy.ts';
import { page } from '../respond.ts';

/** So long may a brownout that is over still be shown. */
const staleAfter = 60_000;

/** `/docs/`, with the facts in force. It is made anew when the policy changes, else once a minute at most. */
export function documentation(policyInForce: () => DeprecationPolicy): RequestHandler {
  let made: { policy: DeprecationPolicy; at: number; answer: RequestHandler } | undefined;
  return (request, response, next) => {
    const policy = policyInForce();
    const now = Date.now();
    if (made?.policy !== policy || now - made.at > staleAfter) {
      const text = renderDocs(contractDocument, factsOf(policy, now));
      made = {
        policy,
        at: now,
        answer: page('text/html; charset=utf-8', text, docsContentSecurityPolicy),
      };
    }
    return made.answer(request, response, next);
  };
}

function factsOf(policy: DeprecationPolicy, now: number): FactsInForce {
  const { deprecatedAt, sunsetAt, successorUrl, documentationUrl, brownouts } = policy;
  return {
    ...(deprecatedAt !== undefined && { deprecatedAt: formatInstant(deprecatedAt) }),
    ...(sunsetAt !== undefined && { sunsetAt: formatInstant(sunsetAt) }),
    ...(successorUrl !== undefined && { successor: successorUrl }),
    ...(documentationUrl !== undefined && { documentation: documentationUrl }),
    brownouts: brownouts
      .filter(({ end }) => end > now)
      .toSorted((a, b) => a.start - b.start)
      .map(({ start, end }) => ({ start: formatInstant(start), end: formatInstant(end) })),
  };
}
