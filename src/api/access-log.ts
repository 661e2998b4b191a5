import type { Log } from '../log.ts';
import type { AccessRecord } from './call.ts';

/** Logs what became of each request: our failures as errors and warnings, all others at the level `http`. */
export function createAccessLog(log: Log): (record: AccessRecord) => void {
  const isVerbose = log.isLevelEnabled('http');
  return (record) => {
    if (record.status === 500) log.error('answered', describe(record));
    else if (record.status > 500) log.warn('answered', describe(record));
    else if (isVerbose) log.http('answered', describe(record));
  };
}

/** An organization is named only once a key has proven it. */
function describe(record: AccessRecord): object {
  const { requestId, operation, organizationId, caller, status, seconds, code, failure } = record;
  return {
    requestId,
    operation,
    status,
    ms: Math.round(seconds * 10_000) / 10,
    ...(code !== undefined && { code }),
    ...(caller !== undefined && { organizationId, keyId: caller.keyId }),
    ...(failure !== undefined && { failure }),
  };
}
