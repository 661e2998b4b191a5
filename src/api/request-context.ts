import { randomUUID } from 'node:crypto';
import type { Response } from 'express';
import type { Operation } from '../contract/routes.ts';
import type { Caller } from '../domain/caller.ts';

/** What is known of one request while it is served; for its answer, the log and the ledger. */
export interface Call {
  requestId: string;
  /** `performance.now()` when the request came in. */
  startedAt: number;
  operation: Operation | undefined;
  /** What its answer carries in any case: a name, its value, the next name … */
  headers: readonly string[];
  /** As claimed; proven only once there is a caller. */
  organizationId: string | undefined;
  caller: Caller | undefined;
  /** What went wrong on our side, for the log. */
  failure: string | undefined;
}

/** A field of the response's own: `locals` is a dictionary, and slower to read than all that is kept there. */
interface WithCall {
  call?: Call;
}

const idGivenByCaller = /^[\w.-]{1,64}$/;

/** Starts the record of a request; a reasonable `X-Request-Id` of the caller's is taken over. */
export function beginCall(response: Response): Call {
  const given = response.req.headers['x-request-id'];
  const requestId = typeof given === 'string' && idGivenByCaller.test(given) ? given : randomUUID();
  const call: Call = {
    requestId,
    startedAt: performance.now(),
    operation: undefined,
    headers: [],
    organizationId: undefined,
    caller: undefined,
    failure: undefined,
  };
  (response as WithCall).call = call;
  return call;
}

/** A call that is over. */
export interface AccessRecord extends Omit<Call, 'headers'> {
  /** 0 where the client went away before it had its answer. */
  status: number;
  seconds: number;
  userAgent: string | undefined;
}

/** What became of a call whose response is closed. */
export function answered(call: Call, response: Response): AccessRecord {
  const { requestId, startedAt, operation, organizationId, caller, failure } = call;
  // Field by field: to spread the call costs more than all the ledger does with it.
  return {
    requestId,
    startedAt,
    operation,
    organizationId,
    caller,
    failure,
    status: response.writableFinished ? response.statusCode : 0,
    seconds: (performance.now() - startedAt) / 1000,
    userAgent: response.req.headers['user-agent'],
  };
}

/** Whether a record was started: not where the request was none of the public face. */
export function hasCall(response: Response): boolean {
  return (response as WithCall).call !== undefined;
}

export function callOf(response: Response): Call {
  const { call } = response as WithCall;
  if (call === undefined) throw new Error('this response has no call');
  return call;
}
