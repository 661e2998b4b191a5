import { contractDocument, operationsOf } from '../../contract/document.ts';
import { readSettings, type PolicyLayer } from './policy.ts';

/** The lowest layer of the policy: `x-deprecation` of the operations in openapi.yaml. */
export function readContractPolicy(): PolicyLayer {
  const described = operationsOf(contractDocument()).find(({ operation }) => operation['x-deprecation']);
  const { successor, documentation, ...dates } = described?.operation['x-deprecation'] ?? {};
  const read = readSettings({ ...dates, successorUrl: successor, documentationUrl: documentation });
  if (read.kind === 'ok') return read.layer;
  throw new Error(`openapi.yaml, x-deprecation: ${JSON.stringify(read.mistakes)}`);
}
