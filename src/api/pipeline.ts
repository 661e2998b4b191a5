import type { Request, RequestHandler, Response } from 'express';
import type { Queueing } from '../cutover/replay/queueing.ts';
import { verdictAt } from '../deprecation/policy/policy.ts';
import type { PolicyInForce } from '../deprecation/policy/policy-store.ts';
import type { Admission, Cutover } from '../cutover/switch/instance.ts';
import type { TargetCheck } from '../lib/hosts.ts';
import {
  authenticateCaller,
  recordClaim,
  requirePermission,
  type AuthenticationOptions,
  type AuthenticatedCaller,
} from './middleware/authentication.ts';
import { beginWork, callOf, endWork } from './call.ts';
import type { CheckedCaller, Forwarding } from './forwarding.ts';
import { createGate } from './middleware/deprecation-gate.ts';
import { isLarge, type LoadShedding } from './middleware/load-shedding.ts';
import { refuseTarget } from './middleware/malformed-requests.ts';
import type { Limiter } from './middleware/rate-limit.ts';
import { hasUnreadBody, isCompressed, maxBytesOf } from './middleware/receive-body.ts';
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
 * Answers the paths of the contract, and malformed targets; any other request is left to the next handler. Either is
 * done once a body that came with its headers has been parsed. Each request to the contract passes the same stages: gate
 * (410), load shedding, authentication, rate limit, role (403), body, admission of a change, handler, response. It holds
 * a slot while it is worked on, but not while it waits for its body.
 */
export function createPipeline(rows: readonly Row[], options: PipelineOptions): RequestHandler {
  const { deprecation, load, enforceRateLimit, cutover, forwarding, queueing } = options;
  const { slots, openBodies } = load;
  const rowsByPath = byPathAndMethod(rows);
  const hasLegacy = forwarding !== undefined;
  const gate = createGate(() => deprecation.current.policy, { ...options, hasLegacy });

  return (request, response, next) => {
    const byMethod = rowsByPath.get(request.path);
    const { targetFault } = response.locals as TargetCheck;
    const row = targetFault === undefined ? byMethod?.get(request.method) : undefined;
    const call = callOf(response);
    const { requestId } = call;
    if (byMethod === undefined) response.setHeader('X-Request-Id', requestId);
    else {
      const ownHeaders = ['X-Request-Id', requestId, 'Cache-Control', 'private, no-store'];
      call.headers = [...ownHeaders, ...deprecation.current.headers];
    }
    if (row !== undefined) beginWork(response, row.operation);
    const proceed = (): void => {
      if (row !== undefined) void answer(row, request, response);
      // Its body is malformed, and it was refused for that.
      else if (response.headersSent) return;
      else if (targetFault !== undefined) refuseTarget(response, targetFault);
      else if (byMethod === undefined) next();
      else {
        const methods = [...byMethod.keys(), 'OPTIONS'];
        response.setHeader('Allow', methods.join(', '));
        const isOptions = request.method === 'OPTIONS';
        void sendAnswer(response, isOptions ? { kind: 'no-content' } : methodNotAllowed(methods));
      }
    };
    // A response before the end of the body would close the connection, and a body that came with its headers is parsed
    // right after them: before the event loop's next phase.
    if (hasUnreadBody(request)) setImmediate(proceed);
    else proceed();
  };

  async function answer(row: Row, request: Request, response: Response): Promise<void> {
    try {
      const now = Date.now();
      const verdict = verdictAt(deprecation.current.policy, now);
      if (verdict !== 'serve') await gate(verdict, now, request, response);
      const served = await (forwarding === undefined
        ? serve(row, request, response)
        : forwarding(row, request, response, { serveRead, checkCaller, serveChange }));
      const sending = served === undefined ? undefined : sendAnswer(response, served);
      if (sending !== undefined) await sending;
    } catch (error) {
      // It was refused before authentication, for example as `overloaded`.
      if (callOf(response).organizationId === undefined) recordClaim(request, response, options);
      sendError(response, error);
    } finally {
      endWork(response);
    }
  }

  /** The stages after the gate, in order. Throws the problem that ends them early. */
  async function serve(row: Row, request: Request, response: Response): Promise<Answer> {
    // Otherwise a Redis that came back without its data would refuse every key.
    const mode = cutover.readMode();
    if (mode instanceof Promise) await mode;
    if (row.body === undefined) return await serveRead(row, request, response);
    const checked = await checkCaller(row, request, response);
    return await serveChange(row, request, response, checked);
  }

  async function serveRead(row: Row, request: Request, response: Response): Promise<Answer> {
    slots.enter();
    try {
      return await row.handler(await authenticateAllowed(row, request, response), undefined);
    } finally {
      slots.leave();
    }
  }

  /** The stages of a change before its body. */
  async function checkCaller(row: Row, request: Request, response: Response): Promise<CheckedCaller> {
    const isLate = hasUnreadBody(request);
    slots.enter();
    try {
      return { authenticated: await authenticateAllowed(row, request, response), isLate };
    } finally {
      slots.leave();
    }
  }

  async function authenticateAllowed(
    row: Row,
    request: Request,
    response: Response,
  ): Promise<AuthenticatedCaller> {
    const authenticated = await authenticateCaller(row.authenticate, request, response, options);
    const { caller } = authenticated.found;
    if (enforceRateLimit !== undefined) await enforceRateLimit(response, authenticated.base, caller.keyId);
    requirePermission(caller, row);
    return authenticated;
  }

  /**
   * The stages of a change from its body on. If `given`, the body has been received, and the change is made under that
   * admission; otherwise it asks for one once it has been.
   */
  async function serveChange(
    row: Row,
    request: Request,
    response: Response,
    { authenticated, isLate }: CheckedCaller,
    given?: Admission,
  ): Promise<Answer> {
    const { body: reader } = row;
    if (reader === undefined) throw new Error('a change has a body');
    const { keyId } = authenticated.found.caller;
    const bytes = maxBytesOf(request, reader.maxBytes(request));
    // Even if it has arrived, a compressed body has yet to be decompressed, and a large one to be read from its file.
    const takesTime = isCompressed(request) || (given === undefined ? isLate : isLarge(bytes));
    const openBody = takesTime ? openBodies.enter(keyId, bytes) : undefined;
    let current = authenticated;
    let admission = given;
    try {
      const body = await reader.read(request, response, openBody?.reserve);
      const admitted = given ?? cutover.admitChange();
      const hasWaited = admitted instanceof Promise;
      admission = hasWaited ? await admitted : admitted;
      slots.enter();
      try {
        // A request is checked against the key and the settings as they are when its body has arrived.
        if (isLate || hasWaited) {
          current = await authenticateCaller(row.authenticate, request, response, options);
          requirePermission(current.found.caller, row);
        }
        if ('snapshot' in current.found) {
          const { snapshot, caller } = current.found;
          snapshot.epoch = admission.epoch;
          if (admission.mode === 'reverse') {
            const { organizationId = '' } = callOf(response);
            snapshot.queued = queueing({ ...caller, organizationId }, String(request.headers['x-api-key']));
          }
        }
        return await row.handler(current, body);
      } finally {
        slots.leave();
      }
    } finally {
      if (given === undefined) admission?.release();
      openBody?.leave();
    }
  }
}
