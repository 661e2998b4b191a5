import type { IncomingHttpHeaders } from 'node:http';
import type { Request } from 'express';
import { ProblemError } from '../../contract/problems.ts';

const defaultLimits = {
  slots: 2000,
  /** Bodies of more than 64 KiB in this process. A long list counts as several. */
  largeBodies: 64,
  /** Bodies of one API key, or of one address without a known key, so that no single sender can use up the limit. */
  largeBodiesPerKey: 16,
  smallBodiesPerKey: 256,
};

/** What counts as one large body, in bytes of memory: no picture takes more. */
const largeBodyMemory = 24 * 1024 * 1024;

/** A body that is being received, or worked on. */
interface OpenBody {
  /** Counts a body that takes much memory as several; throws a 503 `overloaded` if those are too many. */
  takes: (memory: number) => void;
  leave: () => void;
}

/** How long after a refusal this process counts as overloaded, in ms. */
const overloadedMs = 5000;

export type LoadShedding = ReturnType<typeof createLoadShedding>;

/**
 * Refuses work beyond what this process can handle at once, so that the rest is answered in time: a 503 is cheap, an
 * ever-growing queue is not. Each `enter` must be followed by one `leave`, unless it throws a 503 `overloaded` because
 * the limit is reached.
 */
export function createLoadShedding(limits = defaultLimits) {
  let refusedAt = -Infinity;
  const refuse = (detail: string): never => {
    refusedAt = performance.now();
    throw new ProblemError('overloaded', detail);
  };

  let slotsInUse = 0;
  let openBodies = 0;
  const large = createCount(limits.largeBodies, limits.largeBodiesPerKey);
  const small = createCount(Infinity, limits.smallBodiesPerKey);

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
      enter: (keyId: string, bytes: number): OpenBody => {
        const ofSize = isLarge(bytes) ? large : small;
        const { limit, perKey, byKey } = ofSize;
        let counted = 0;
        const countAs = (count: number): void => {
          const more = count - counted;
          const ofKey = (byKey.get(keyId) ?? 0) + more;
          if (ofSize.open + more > limit) refuse('This instance is receiving too many large bodies.');
          if (ofKey > perKey) {
            // This is not overload: only this key has reached its limit.
            throw new ProblemError('overloaded', 'This API key is sending too many bodies at the same time.');
          }
          if (ofKey > 0) byKey.set(keyId, ofKey);
          else byKey.delete(keyId);
          ofSize.open += more;
          counted = count;
        };
        countAs(1);
        openBodies++;
        return {
          // Not above the limit of one key: a single body is accepted, however large MAX_LIST_BYTES is.
          takes: (memory) => countAs(Math.min(Math.max(1, Math.round(memory / largeBodyMemory)), perKey)),
          leave: () => {
            countAs(0);
            openBodies--;
          },
        };
      },
      inUse: () => openBodies,
    },
    /** Whether a request was refused in the last seconds. */
    isOverloaded: () => performance.now() - refusedAt < overloadedMs,
  };
}

function createCount(limit: number, perKey: number) {
  return { limit, perKey, open: 0, byKey: new Map<string, number>() };
}

/** Whether a body of this many bytes counts as a large one. */
export const isLarge = (bytes: number): boolean => bytes > 64 * 1024;

/** The most bytes that a body can have once decompressed, where the operation accepts `limit`. */
export function mostBytesOf({ headers }: Request, limit: number): number {
  return isCompressed(headers) ? limit : Number(headers['content-length'] ?? limit);
}

/** Whether a body has more bytes than are sent: up to a thousand times as many. */
export function isCompressed(headers: IncomingHttpHeaders): boolean {
  return (headers['content-encoding'] || 'identity').toLowerCase() !== 'identity';
}
