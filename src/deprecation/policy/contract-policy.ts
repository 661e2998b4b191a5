import { contractDocument, operationsOf } from '../../contract/document.ts';
import { readSettings, type PolicyLayer } from './policy.ts';

/** The lowest layer of the policy: `x-deprecation` of the operations in openapi.yaml. */
export function readContractPolicy(): PolicyLayer {
  const described = operationsOf(contractDocument()).find(({ operation }) => operation['x-deprecation']);
  const { successor, documentation, ...dates } = described?.operation['x-deprecation'] ?? {};
  const written = { ...dates, successorUrl: successor, documentationUrl: documentation };
  const { layer, mistakes } = readSettings(written);
  if (mistakes.length > 0) throw new Error(`openapi.yaml, x-deprecation: ${JSON.stringify(mistakes)}`);
  return layer;
}
