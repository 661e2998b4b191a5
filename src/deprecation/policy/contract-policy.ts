import { contractDocument, operationsOf } from '../../contract/document.ts';
import { readPolicyFields, type PolicyLayer } from './policy.ts';

/** The lowest layer of the policy: the `x-deprecation` facts that stand beside the operations in openapi.yaml. */
export function readContractPolicy(): PolicyLayer {
  const facts = operationsOf(contractDocument).find(({ operation }) => operation['x-deprecation']);
  const policy = readPolicyFields({ ...facts?.operation['x-deprecation'] });
  if (policy.kind === 'invalid') throw new Error(`openapi.yaml, x-deprecation: ${policy.reasons.join('; ')}`);
  return policy.layer;
}
