/** The five operations of the contract (section 4), by their operationId in openapi.yaml. */
export const operations = [
  'getProfile',
  'putProfile',
  'banUsernames',
  'removeDeniedUsernames',
  'overwriteDenylist',
] as const;

export type Operation = (typeof operations)[number];
