import { readEvidence, type GatheredEvidence } from '../cutover/verdict/evidence.ts';
import type { RedisClient } from '../redis/connection/connect.ts';

/** How long evidence is shared by scrapes and open pages, in ms. */
const sharedMs = 5000;

/** Reads the state of the cut-over; however many ask, Redis is asked once in five seconds. A failed read is not kept. */
export function createEvidenceReader(
  client: RedisClient,
  prefix: string,
  now: () => number,
): () => Promise<GatheredEvidence> {
  let shared: { at: number; evidence: Promise<GatheredEvidence> } | undefined;
  return async () => {
    const at = now();
    if (shared === undefined || at - shared.at >= sharedMs) {
      shared = { at, evidence: readEvidence(client, prefix) };
    }
    const { evidence } = shared;
    try {
      return await evidence;
    } catch (error) {
      if (shared?.evidence === evidence) shared = undefined;
      throw error;
    }
  };
}
