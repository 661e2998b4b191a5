import { contractDocument, operationsOf } from '../../contract/document.ts';
import { readPolicyFields, type PolicyLayer } from './policy.ts';

/** The lowest layer of the policy: `x-deprecation` of the operations in openapi.yaml. */
export function readContractPolicy(): PolicyLayer {
  const facts = operationsOf(contractDocument()).find(({ operation }) => operation['x-deprecation']);
  const policy = readPolicyFields({ ...facts?.operation['x-deprecation'] });
  if (policy.kind === 'ok') return policy.layer;
  const reasons = policy.mistakes.map(({ field, reason }) => `${field}: ${reason}`);
  throw new Error(`openapi.yaml, x-deprecation: ${reasons.join('; ')}`);
}
