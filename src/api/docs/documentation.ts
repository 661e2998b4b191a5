import type { RequestHandler } from 'express';
import type { FactsInForce } from './notice.ts';
import { docsContentSecurityPolicy, renderDocs } from './page.ts';
import { contractDocument } from '../../contract/document.ts';
import { formatInstant } from '../../lib/iso8601.ts';
import type { DeprecationPolicy } from '../../deprecation/policy/policy.ts';
import { staticText } from './static-text.ts';

/** How long a past brownout may still be shown, in ms. */
const staleAfter = 60_000;

/** `/docs/`, with the facts in force. It is rendered again when the policy changes, and otherwise at most once a minute. */
export function documentation(policyInForce: () => DeprecationPolicy, baseUrl = ''): RequestHandler {
  let made: { policy: DeprecationPolicy; at: number; answer: RequestHandler } | undefined;
  return (request, response, next) => {
    const policy = policyInForce();
    const now = Date.now();
    if (made?.policy !== policy || now - made.at > staleAfter) {
      const text = renderDocs(contractDocument, factsOf(policy, now, baseUrl), baseUrl);
      made = {
        policy,
        at: now,
        answer: staticText('text/html; charset=utf-8', text, docsContentSecurityPolicy),
      };
    }
    return made.answer(request, response, next);
  };
}

function factsOf(policy: DeprecationPolicy, now: number, baseUrl: string): FactsInForce {
  const absolute = (url: string) => (url.startsWith('/') ? baseUrl + url : url);
  const { deprecatedAt, sunsetAt, successorUrl, documentationUrl, brownouts } = policy;
  return {
    ...(deprecatedAt !== undefined && { deprecatedAt: formatInstant(deprecatedAt) }),
    ...(sunsetAt !== undefined && { sunsetAt: formatInstant(sunsetAt) }),
    ...(successorUrl !== undefined && { successor: absolute(successorUrl) }),
    ...(documentationUrl !== undefined && { documentation: absolute(documentationUrl) }),
    brownouts: brownouts
      .filter(({ end }) => end > now)
      .toSorted((a, b) => a.start - b.start)
      .map(({ start, end }) => ({ start: formatInstant(start), end: formatInstant(end) })),
  };
}
