import type { Request } from 'express';
import { ProblemError } from '../../contract/problems.ts';

/**
 * Refuses work beyond what this process can handle at once, so that the rest is answered in time: a 503 is cheap, an
 * ever-growing queue is not. Each `enter` needs exactly one `leave`, unless it throws a 503 `overloaded` because the
 * limit is reached.
 */
export interface LoadShedding {
  /** For requests in progress. */
  slots: { enter: () => void; leave: () => void; inUse: () => number };
  /** For bodies that are being received. They wait for their client, and take memory and a socket, but no slot. */
  openBodies: {
    enter: (keyId: string, request: Request) => void;
    leave: (keyId: string, request: Request) => void;
    inUse: () => number;
  };
  /** Whether a request was refused in the last seconds. */
  isOverloaded: () => boolean;
}

interface LoadLimits {
  slots: number;
  /** Bodies above 64 KiB in this process: each may hold a whole picture or list in memory. */
  largeBodies: number;
  /** Bodies of one API key, or of one address without a known key, so that no single sender can use up the limit. */
  largeBodiesPerKey: number;
  smallBodiesPerKey: number;
}

const defaultLimits: LoadLimits = {
  slots: 2000,
  largeBodies: 64,
  largeBodiesPerKey: 16,
  smallBodiesPerKey: 256,
};

/** How long after a refusal this process counts as overloaded, in ms. */
const overloadedMs = 5000;

export function createLoadShedding(limits = defaultLimits): LoadShedding {
  let refusedAt = -Infinity;
  const refuse = (detail: string): never => {
    refusedAt = performance.now();
    throw new ProblemError('overloaded', detail);
  };

  let slotsInUse = 0;
  let bodies = 0;
  let largeBodies = 0;
  const byKey = { large: new Map<string, number>(), small: new Map<string, number>() };

  return {
    slots: {
      enter: () => {
        if (slotsInUse >= limits.slots) refuse('This instance has too many concurrent requests.');
        slotsInUse++;
      },
      leave: () => {
        slotsInUse--;
      },
      inUse: () => slotsInUse,
    },
    openBodies: {
      enter: (keyId, request) => {
        const size = sizeOf(request);
        const ofKey = byKey[size].get(keyId) ?? 0;
        if (size === 'large' && largeBodies >= limits.largeBodies) {
          refuse('This instance is receiving too many large bodies.');
        }
        if (ofKey >= (size === 'large' ? limits.largeBodiesPerKey : limits.smallBodiesPerKey)) {
          // This is not overload: only this key has reached its limit.
          throw new ProblemError('overloaded', 'This sender is sending too many bodies at the same time.');
        }
        byKey[size].set(keyId, ofKey + 1);
        bodies++;
        if (size === 'large') largeBodies++;
      },
      leave: (keyId, request) => {
        const size = sizeOf(request);
        const ofKey = byKey[size].get(keyId) ?? 0;
        if (ofKey > 1) byKey[size].set(keyId, ofKey - 1);
        else byKey[size].delete(keyId);
        bodies--;
        if (size === 'large') largeBodies--;
      },
      inUse: () => bodies,
    },
    isOverloaded: () => performance.now() - refusedAt < overloadedMs,
  };
}

const smallBytes = 64 * 1024;

function sizeOf({ headers }: Request): 'large' | 'small' {
  return Number(headers['content-length'] ?? Infinity) > smallBytes ? 'large' : 'small';
}
