import { readWhole, type MediaStore } from '../../../media/store.ts';
import { organizationBase } from '../../../redis/keys.ts';
import type { RedisClient } from '../../../redis/connection/client.ts';
import { bodyOf, readAnswer } from '../../forward/content.ts';
import { isUndelivered, type Legacy, type LegacyRequest, type LegacyResponse } from '../../forward/legacy.ts';
import { remarkOn, retryAfterIn } from './answers.ts';
import { currentDenylist, currentProfile, deniedAmong } from '../current-state.ts';
import type { AcceptedChange, QueuedChange } from '../queue/changes.ts';
import type { ReplayQueue, UploadedFile } from '../queue/queue.ts';
import { banBody, json, profileBodies, toLegacyRequest, type EncodedBody } from './request.ts';
import { isMade, probeSucceeded, type DeliveryOutcome } from '../rules.ts';

export interface Delivered {
  outcome: DeliveryOutcome;
  uploaded?: UploadedFile;
  /**
   * In words: what of an accepted change the legacy service did not make, the code of its refusal, or why there is no
   * response.
   */
  remark?: string;
}

/** Why there is nothing to send: a retry has nothing to say any more, or the picture file of a change is gone. */
type Unsendable = 'nothing' | 'picture-gone';

/** A change with everything in memory: it can be sent without further waiting. */
interface Prepared {
  kind: AcceptedChange['kind'];
  /** Each takes a request; one is sent after the other. */
  bodies: EncodedBody[];
  credentials: readonly string[];
}

export interface DeliveryOptions {
  store: RedisClient;
  keyPrefix: string;
  organizationHeader: string;
  legacy: Legacy;
  media: Pick<MediaStore, 'open'>;
  queue: Pick<ReplayQueue, 'readOverwrite'>;
}

/** Sends changes to the legacy service. */
export type Delivery = ReturnType<typeof createDelivery>;

export function createDelivery(options: DeliveryOptions) {
  const { store, keyPrefix, organizationHeader, legacy, media, queue } = options;

  async function bodiesFor({ caller, change, isRetry }: QueuedChange): Promise<EncodedBody[] | Unsendable> {
    const { organizationId, userId = '' } = caller;
    const base = organizationBase(keyPrefix, organizationId);
    switch (change.kind) {
      case 'put': {
        const wanted = isRetry ? await currentProfile(store, base, userId) : change;
        if (wanted === undefined) return 'nothing';
        const { picture } = wanted;
        if (!picture || !('file' in picture)) return await profileBodies(wanted);
        const found = await readWhole(media, picture.file);
        if (found === undefined) return 'picture-gone';
        return await profileBodies(wanted, { ...found, name: picture.file });
      }
      case 'ban': {
        const names = change.replacements.map(([name]) => name);
        const wanted = isRetry ? await deniedAmong(store, base, names) : new Set(names);
        const replacements = change.replacements.filter(([name]) => wanted.has(name));
        return replacements.length === 0 ? 'nothing' : [banBody(replacements)];
      }
      case 'remove': {
        const denied = isRetry ? await deniedAmong(store, base, change.usernames) : new Set();
        const usernames = change.usernames.filter((name) => !denied.has(name));
        return usernames.length === 0 ? 'nothing' : [json(usernames)];
      }
      case 'overwrite': {
        if (isRetry) return [json(await currentDenylist(store, base))];
        const usernames = [];
        const parts = queue.readOverwrite(organizationId, change.list);
        for await (const part of parts) for (const name of part) usernames.push(name);
        return [json(usernames)];
      }
    }
  }

  /** By which the legacy service knows the caller (contract 5): a name, its value, the next name … */
  function credentialHeaders({ caller }: QueuedChange, apiKey: string): string[] {
    // Ids are in UTF-8; HTTP carries bytes, which Node.js writes as Latin-1.
    const organization = Buffer.from(caller.organizationId).toString('latin1');
    return ['x-api-key', apiKey, organizationHeader, organization];
  }

  async function sendPart({ kind, credentials }: Prepared, part: EncodedBody): Promise<Delivered> {
    let response: LegacyResponse;
    let body: Buffer | undefined;
    try {
      response = await legacy.send(toLegacyRequest(kind, part, credentials));
      body = await bodyOf(response);
    } catch (error) {
      const reason = causeOf(error);
      if (isUndelivered(error)) return { outcome: { kind: 'unreachable', reason } };
      return { outcome: { kind: 'lost' }, remark: reason };
    }
    const answer = await readAnswer(response, body);
    const { status, headers } = response;
    const outcome: DeliveryOutcome = { kind: 'answered', status };
    const retryAfter = retryAfterIn(headers);
    if (retryAfter !== undefined) outcome.retryAfter = retryAfter;
    if (answer === null) outcome.isForeign = true;
    const remark = remarkOn(kind, part.fields ?? {}, status, answer);
    const uploaded = uploadedBy(part, outcome, answer);
    return { outcome, ...(remark !== undefined && { remark }), ...(uploaded !== undefined && { uploaded }) };
  }

  return {
    prepare: async (queued: QueuedChange, apiKey: string): Promise<Prepared | Unsendable> => {
      const bodies = await bodiesFor(queued);
      if (typeof bodies === 'string') return bodies;
      return { kind: queued.change.kind, bodies, credentials: credentialHeaders(queued, apiKey) };
    },
    /**
     * Sends the parts of a change until one of them fails, which decides; of those that succeed, the first remark counts.
     * Undefined if `maySend` no longer holds before one of them.
     */
    send: async (prepared: Prepared, maySend: () => boolean): Promise<Delivered | undefined> => {
      const made: Delivered[] = [];
      for (const part of prepared.bodies) {
        if (!maySend()) return undefined;
        const delivered = await sendPart(prepared, part);
        if (!isMade(delivered.outcome)) return delivered;
        made.push(delivered);
      }
      return made.reduceRight((later, one) => ({ ...later, ...one }));
    },
    /**
     * Whether a request that changes nothing succeeds with the key of this change. An administrator, whose key may belong
     * to no user, bans no names.
     */
    probe: async (queued: QueuedChange, apiKey: string): Promise<boolean> => {
      const headers = credentialHeaders(queued, apiKey);
      const request: LegacyRequest =
        queued.change.kind === 'put'
          ? { method: 'GET', path: '/api/profile/', headers }
          : toLegacyRequest('ban', banBody([]), headers);
      try {
        const response = await legacy.send(request);
        const body = await bodyOf(response);
        return probeSucceeded(response.status, (await readAnswer(response, body)) === null);
      } catch {
        return false;
      }
    },
  };
}

/** Why a request has no response: that of the problem, which clients would be sent, or of a body that broke off. */
function causeOf(error: unknown): string {
  const { cause = error } = error as Error;
  return (cause as Error).message;
}

/** The file of a part that was sent, and where its answer shows it. */
function uploadedBy(
  { file }: EncodedBody,
  outcome: DeliveryOutcome,
  answer: unknown,
): UploadedFile | undefined {
  const { profilePictureUrl: url } = (answer ?? {}) as Record<string, unknown>;
  return file !== undefined && isMade(outcome) && typeof url === 'string' ? { file, url } : undefined;
}
