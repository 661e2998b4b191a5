import type { IncomingHttpHeaders } from 'node:http';
import type { Request } from 'express';
import { ProblemError } from '../../contract/problems.ts';

const defaultLimits = {
  slots: 2000,
  /** Bodies in this process that may take more than 64 KiB: each may hold a whole picture or list in memory. */
  largeBodies: 64,
  /** Bodies of one API key, or of one address without a known key, so that no single sender can use up the limit. */
  largeBodiesPerKey: 16,
  smallBodiesPerKey: 256,
};

/** How long after a refusal this process counts as overloaded, in ms. */
const overloadedMs = 5000;

export type LoadShedding = ReturnType<typeof createLoadShedding>;

/**
 * Refuses work beyond what this process can handle at once, so that the rest is answered in time: a 503 is cheap, an
 * ever-growing queue is not. Each `enter` needs exactly one `leave`, unless it throws a 503 `overloaded` because the
 * limit is reached.
 */
export function createLoadShedding(limits = defaultLimits) {
  let refusedAt = -Infinity;
  const refuse = (detail: string): never => {
    refusedAt = performance.now();
    throw new ProblemError('overloaded', detail);
  };

  let slotsInUse = 0;
  const bodies = {
    large: { limit: limits.largeBodies, perKey: limits.largeBodiesPerKey, open: 0, byKey: countsByKey() },
    small: { limit: Infinity, perKey: limits.smallBodiesPerKey, open: 0, byKey: countsByKey() },
  };

  return {
    /** For requests in progress. */
    slots: {
      enter: (): void => {
        if (slotsInUse >= limits.slots) refuse('This instance has too many concurrent requests.');
        slotsInUse++;
      },
      leave: (): void => {
        slotsInUse--;
      },
      inUse: () => slotsInUse,
    },
    /**
     * For bodies that are being received, of at most `bytes` bytes. They wait for their client, and take memory and a
     * socket, but no slot.
     */
    openBodies: {
      enter: (keyId: string, bytes: number): void => {
        const ofSize = bodies[sizeOf(bytes)];
        const ofKey = ofSize.byKey.get(keyId) ?? 0;
        if (ofSize.open >= ofSize.limit) refuse('This instance is receiving too many large bodies.');
        if (ofKey >= ofSize.perKey) {
          // This is not overload: only this key has reached its limit.
          throw new ProblemError('overloaded', 'This API key is sending too many bodies at the same time.');
        }
        ofSize.byKey.set(keyId, ofKey + 1);
        ofSize.open++;
      },
      leave: (keyId: string, bytes: number): void => {
        const ofSize = bodies[sizeOf(bytes)];
        const ofKey = ofSize.byKey.get(keyId) ?? 0;
        if (ofKey > 1) ofSize.byKey.set(keyId, ofKey - 1);
        else ofSize.byKey.delete(keyId);
        ofSize.open--;
      },
      inUse: () => bodies.large.open + bodies.small.open,
    },
    /** Whether a request was refused in the last seconds. */
    isOverloaded: () => performance.now() - refusedAt < overloadedMs,
  };
}

const countsByKey = (): Map<string, number> => new Map();

const smallBytes = 64 * 1024;

const sizeOf = (bytes: number): 'large' | 'small' => (bytes > smallBytes ? 'large' : 'small');

/** The most bytes that a body can take in memory, where the operation accepts `limit`. */
export function bytesOf({ headers }: Request, limit: number): number {
  return isCompressed(headers) ? limit : Number(headers['content-length'] ?? limit);
}

/** Whether a body has more bytes than are sent: up to a thousand times as many. */
export function isCompressed(headers: IncomingHttpHeaders): boolean {
  return (headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity';
}
