import { ProblemError } from '../../contract/problems.ts';

const defaultLimits = {
  slots: 2000,
  /** Bodies of more than 64 KiB in this process. A long list counts as several. */
  largeBodies: 64,
  /** Bodies of one sender: an API key, or an address without a known key. None can use up the limit. */
  largeBodiesPerSender: 16,
  smallBodiesPerSender: 256,
};

/** The memory that counts as one large body, in bytes: no picture takes more. */
const largeBodyMemory = 24 * 1024 * 1024;

/** A body that is being received or worked on. */
interface OpenBody {
  /** Says how many bytes of memory the body will take: much counts as several. Throws a 503 `overloaded` at the limit. */
  reserve: (memory: number) => void;
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
  const large = createCounter(limits.largeBodies, limits.largeBodiesPerSender, refuse);
  const small = createCounter(Infinity, limits.smallBodiesPerSender, refuse);

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
      enter: (sender: string, bytes: number): OpenBody => {
        const body = (isLarge(bytes) ? large : small)(sender);
        openBodies++;
        return {
          ...body,
          leave: () => {
            body.leave();
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

/** Counts the bodies of one size, in all and by sender; a large one may count as several. */
function createCounter(limit: number, perSender: number, refuse: (detail: string) => never) {
  let open = 0;
  const bySender = new Map<string, number>();
  return (sender: string): OpenBody => {
    let counted = 0;
    const countAs = (count: number): void => {
      const more = count - counted;
      const ofSender = (bySender.get(sender) ?? 0) + more;
      if (open + more > limit) refuse('This instance is receiving too many large bodies.');
      if (ofSender > perSender) {
        // This is not overload: only this sender has reached its limit.
        throw new ProblemError(
          'overloaded',
          'Too many bodies are being sent at the same time with this API key, or from this address.',
        );
      }
      if (ofSender > 0) bySender.set(sender, ofSender);
      else bySender.delete(sender);
      open += more;
      counted = count;
    };
    countAs(1);
    return {
      // Not above the limit of one sender: a single body is accepted, however large MAX_LIST_BYTES is.
      reserve: (memory) => countAs(Math.min(Math.max(1, Math.round(memory / largeBodyMemory)), perSender)),
      leave: () => countAs(0),
    };
  };
}

/** Whether a body of this many bytes counts as a large one. */
export const isLarge = (bytes: number): boolean => bytes > 64 * 1024;
