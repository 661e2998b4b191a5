import type { Log } from '../log.ts';
import type { AccessRecord } from './call.ts';

/** How many refusals are logged in one second; beyond that, the log says how many it left out. */
const maxRefusalsPerSecond = 50;

/**
 * Logs the outcome of each request: failures of the service as errors and warnings, refusals at `info` (only a sample
 * if there are very many), all others at `http`.
 */
export function createAccessLog(log: Log): (record: AccessRecord) => void {
  const isVerbose = log.isLevelEnabled('http');
  let second = 0;
  let logged = 0;
  let suppressed = 0;
  return (record) => {
    const { status, operation, code } = record;
    if (status === 500) log.error('answered', describe(record));
    else if (status > 500) log.warn('answered', describe(record));
    else if (operation !== undefined && code !== undefined) {
      const now = Math.floor(performance.now() / 1000);
      if (now !== second) {
        second = now;
        logged = 0;
      }
      if (++logged > maxRefusalsPerSecond) {
        suppressed++;
        return;
      }
      log.info('refused', { ...describe(record), ...(suppressed > 0 && { suppressed }) });
      suppressed = 0;
    } else if (isVerbose) log.http('answered', describe(record));
  };
}

/**
 * The organization is logged only if a key has proven it. For a refusal by a rate limit or because of overload, the
 * client's address is logged if the caller is unknown.
 */
function describe(record: AccessRecord): object {
  const { requestId, operation, status, code, caller, address, traceparent, failure } = record;
  return {
    requestId,
    operation,
    status,
    ms: Math.round(record.seconds * 10_000) / 10,
    ...(code !== undefined && { code }),
    ...(caller !== undefined && { organizationId: record.organizationId, keyId: caller.keyId }),
    ...(address !== undefined && (status === 429 || status === 503) && { address }),
    ...(traceparent !== undefined && traceContext.test(traceparent) && { traceparent }),
    ...(failure !== undefined && { failure }),
  };
}

/** W3C Trace Context §3.2. */
const traceContext = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/;
