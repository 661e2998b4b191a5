import type { RequestHandler } from 'express';
import type { ContractDocument } from '../../contract/document.ts';
import type { DeprecationPolicy } from '../../deprecation/policy/policy.ts';
import { docsContentSecurityPolicy, renderDocs } from './page.ts';
import { staticText } from './static-text.ts';

/** How long a brownout may still be shown once it is over, in ms. */
const staleAfter = 60_000;

/** `/docs/`, with the policy in force. It is rendered again if that has changed, or after a minute. */
export function documentation(
  document: ContractDocument,
  policyInForce: () => DeprecationPolicy,
  baseUrl?: string,
): RequestHandler {
  let rendered: { policy: DeprecationPolicy; at: number; serve: RequestHandler } | undefined;
  return (request, response, next) => {
    const policy = policyInForce();
    const now = Date.now();
    if (rendered?.policy !== policy || now - rendered.at > staleAfter) {
      const text = renderDocs(document, policy, baseUrl);
      const serve = staticText('text/html; charset=utf-8', text, docsContentSecurityPolicy);
      rendered = { policy, at: now, serve };
    }
    return rendered.serve(request, response, next);
  };
}
