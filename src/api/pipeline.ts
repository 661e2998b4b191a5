import { setImmediate as nextPhase } from 'node:timers/promises';
import type { Request, RequestHandler, Response } from 'express';
import type { Queueing } from '../cutover/replay/queue/queueing.ts';
import type { PolicyInForce } from '../deprecation/policy/policy-store.ts';
import type { Admission, Cutover } from '../cutover/switch/instance.ts';
import type { TargetCheck } from '../lib/hosts.ts';
import {
  authenticateCaller,
  requireRole,
  type AuthenticationOptions,
  type AuthenticatedCaller,
} from './authentication.ts';
import { beginWork, callOf, endWork } from './call.ts';
import type { Forwarding } from './forwarding.ts';
import { createGate } from './middleware/deprecation-gate.ts';
import { isLarge, type LoadShedding } from './middleware/load-shedding.ts';
import { refuseTarget } from './middleware/malformed-requests.ts';
import type { Limiter } from './middleware/rate-limit.ts';
import { isCompressed, maxBytesOf } from './middleware/receive-body.ts';
import { byPathAndMethod, type Row } from './operations.ts';
import { methodNotAllowed, sendAnswer, sendError, type Answer } from './respond.ts';

export interface PipelineOptions extends AuthenticationOptions {
  /** The deprecation policy in force, whose headers every response of the contract carries. */
  deprecation: { readonly current: PolicyInForce };
  load: LoadShedding;
  /** Absent if no rate limit is configured. */
  enforceRateLimit?: Limiter | undefined;
  cutover: Pick<Cutover, 'readMode' | 'admitChange'>;
  /** Queues changes for their replay, in the mode reverse. */
  queueing: Queueing;
  /** Set if there is a legacy service that requests may be forwarded to. */
  forwarding?: Forwarding | undefined;
}

/**
 * Answers the paths of the contract; every other path is left to the next handler. Each request passes the same
 * stages: gate (410), load shedding, authentication, rate limit, role (403), body, admission of a change, handler,
 * response. It holds a slot while it is worked on, but not while it waits for its body.
 */
export function createPipeline(rows: readonly Row[], options: PipelineOptions): RequestHandler {
  const { deprecation, load, enforceRateLimit, cutover, forwarding, queueing } = options;
  const { slots, openBodies } = load;
  const rowsByPath = byPathAndMethod(rows);
  const gate = createGate(() => deprecation.current.policy, options);

  return (request, response, next) => {
    const byMethod = rowsByPath.get(request.path);
    if (byMethod === undefined) {
      next();
      return;
    }
    const call = callOf(response);
    call.headers = [
      'X-Request-Id',
      call.requestId,
      'Cache-Control',
      'private, no-store',
      ...deprecation.current.headers,
    ];
    const { targetFault } = response.locals as TargetCheck;
    const row = byMethod.get(request.method);
    if (targetFault !== undefined) refuseTarget(response, targetFault);
    else if (row !== undefined) void answer(row, request, response);
    else {
      const methods = [...byMethod.keys(), 'OPTIONS'];
      response.setHeader('Allow', methods.join(', '));
      const isOptions = request.method === 'OPTIONS';
      void sendAnswer(response, isOptions ? { kind: 'no-content' } : methodNotAllowed(methods));
    }
  };

  async function answer(row: Row, request: Request, response: Response): Promise<void> {
    beginWork(response, row.operation);
    try {
      if (Date.now() >= deprecation.current.servesAllUntil) await gate(request, response);
      const served = await (forwarding === undefined
        ? serve(row, request, response)
        : forwarding(row, request, response, serve));
      const sending = served === undefined ? undefined : sendAnswer(response, served);
      if (sending !== undefined) await sending;
    } catch (error) {
      sendError(response, error);
    } finally {
      endWork(response);
    }
  }

  /**
   * The stages after the gate, in order, when Redis is the authority. Throws the problem that ends them early. A change
   * is made under the given admission, or else asks for its own.
   */
  async function serve(row: Row, request: Request, response: Response, given?: Admission): Promise<Answer> {
    // A body that came with its headers is parsed right after them, before the event loop's next phase.
    if (row.body !== undefined && !request.complete) await nextPhase();
    const isLate = row.body !== undefined && !request.complete;
    let authenticated: AuthenticatedCaller;
    slots.enter();
    try {
      // A forwarded read has asked for its mode already.
      const mode = row.body === undefined && forwarding === undefined ? cutover.readMode() : undefined;
      if (mode instanceof Promise) await mode;
      authenticated = await authenticateCaller(row.authenticate, request, response, options);
      const { caller } = authenticated.found;
      if (enforceRateLimit !== undefined) await enforceRateLimit(response, authenticated.base, caller.keyId);
      requireRole(caller, row.role, row.needsUser);
      if (row.body === undefined) return await row.handler(authenticated, undefined);
    } finally {
      slots.leave();
    }

    const { keyId } = authenticated.found.caller;
    const bytes = maxBytesOf(request, row.body.maxBytes(request));
    // Even if it has arrived, a compressed body has yet to be decompressed, and a large one to be read from its file.
    const takesTime = isLate || isCompressed(request) || (given !== undefined && isLarge(bytes));
    const openBody = takesTime ? openBodies.enter(keyId, bytes) : undefined;
    let admission = given;
    try {
      const body = await row.body.read(request, response, openBody?.reserve);
      const admitted = given ?? cutover.admitChange();
      const hasWaited = admitted instanceof Promise;
      admission = hasWaited ? await admitted : admitted;
      slots.enter();
      try {
        // A request is checked against the key and the settings as they are when its body has arrived.
        if (isLate || hasWaited) {
          authenticated = await authenticateCaller(row.authenticate, request, response, options);
          requireRole(authenticated.found.caller, row.role, row.needsUser);
        }
        if ('snapshot' in authenticated.found) {
          const { snapshot } = authenticated.found;
          snapshot.epoch = admission.epoch;
          if (admission.mode === 'reverse') {
            const { organizationId = '' } = callOf(response);
            const caller = { ...authenticated.found.caller, organizationId };
            snapshot.queued = queueing(caller, String(request.headers['x-api-key']));
          }
        }
        return await row.handler(authenticated, body);
      } finally {
        slots.leave();
      }
    } finally {
      if (given === undefined) admission?.release();
      openBody?.leave();
    }
  }
}
