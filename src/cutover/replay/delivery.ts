import { readWhole, type MediaStore } from '../../media/store.ts';
import { organizationBase } from '../../redis/keys.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { bodyOf, readAnswer } from '../forward/content.ts';
import { namesInUse, namesNotAdded } from '../forward/denylist-answers.ts';
import { valuesOf } from '../forward/headers.ts';
import { isUndelivered, type Legacy, type LegacyRequest, type LegacyResponse } from '../forward/legacy.ts';
import { currentDenylist, currentProfile, deniedAmong } from './current-state.ts';
import type { AcceptedChange, QueuedChange } from './queue/changes.ts';
import type { ReplayQueue, UploadedFile } from './queue/queue.ts';
import { banBody, json, profileBody, toLegacyRequest, type EncodedBody } from './request.ts';
import { probeSucceeded, type DeliveryOutcome } from './rules.ts';

export interface Delivered {
  outcome: DeliveryOutcome;
  uploaded?: UploadedFile;
  /**
   * In words: which part of an accepted change the legacy service did not make, the code of its refusal, or why there is
   * no response.
   */
  remark?: string;
}

/** Why there is nothing to send: a retry has nothing to say any more, or the picture file of a change is gone. */
type Unsendable = 'nothing' | 'picture-gone';

/** A request for a change, with everything in memory: it can be sent without further waiting. */
interface Prepared {
  kind: AcceptedChange['kind'];
  request: LegacyRequest;
  /** The picture file that is uploaded. */
  file: string | undefined;
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

  async function bodyFor({ caller, change, isRetry }: QueuedChange): Promise<EncodedBody | Unsendable> {
    const { organizationId, userId = '' } = caller;
    const base = organizationBase(keyPrefix, organizationId);
    switch (change.kind) {
      case 'put': {
        const wanted = isRetry ? await currentProfile(store, base, userId) : change;
        if (wanted === undefined) return 'nothing';
        const { picture } = wanted;
        if (!picture || !('file' in picture)) return await profileBody(wanted);
        const found = await readWhole(media, picture.file);
        if (found === undefined) return 'picture-gone';
        return await profileBody(wanted, { ...found, name: picture.file });
      }
      case 'ban': {
        const names = change.replacements.map(([name]) => name);
        const wanted = isRetry ? await deniedAmong(store, base, names) : new Set(names);
        const replacements = change.replacements.filter(([name]) => wanted.has(name));
        return replacements.length === 0 ? 'nothing' : banBody(replacements);
      }
      case 'remove': {
        const denied = isRetry ? await deniedAmong(store, base, change.usernames) : new Set();
        const usernames = change.usernames.filter((name) => !denied.has(name));
        return usernames.length === 0 ? 'nothing' : json(usernames);
      }
      case 'overwrite': {
        const usernames = [];
        const parts = isRetry
          ? currentDenylist(store, base)
          : queue.readOverwrite(organizationId, change.list);
        for await (const part of parts) for (const name of part) usernames.push(name);
        return json(usernames);
      }
    }
  }

  /** By which the legacy service knows the caller (contract 5): a name, its value, the next name … */
  function credentialHeaders({ caller }: QueuedChange, apiKey: string): string[] {
    // Ids are in UTF-8; HTTP carries bytes, which Node.js writes as Latin-1.
    const organization = Buffer.from(caller.organizationId).toString('latin1');
    return ['x-api-key', apiKey, organizationHeader, organization];
  }

  return {
    prepare: async (queued: QueuedChange, apiKey: string): Promise<Prepared | Unsendable> => {
      const body = await bodyFor(queued);
      if (typeof body === 'string') return body;
      const { kind } = queued.change;
      return {
        kind,
        request: toLegacyRequest(kind, body, credentialHeaders(queued, apiKey)),
        file: body.file,
      };
    },
    send: async (prepared: Prepared): Promise<Delivered> => {
      let response: LegacyResponse;
      let body: Buffer | undefined;
      try {
        response = await legacy.send(prepared.request);
        body = await bodyOf(response);
      } catch (error) {
        const reason = causeOf(error);
        if (isUndelivered(error)) return { outcome: { kind: 'unreachable', reason } };
        return { outcome: { kind: 'lost' }, remark: reason };
      }
      const answer = await readAnswer(response, body);
      const { status, headers } = response;
      const outcome: DeliveryOutcome = { kind: 'answered', status };
      const [retryAfter = ''] = valuesOf(headers, 'retry-after');
      if (/^\d{1,9}$/.test(retryAfter)) outcome.retryAfter = Number(retryAfter);
      if (answer === null) outcome.isForeign = true;
      return { outcome, ...read(prepared, response, answer) };
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

/** What a response contains besides its status. */
function read(
  { kind, file }: Prepared,
  { status }: LegacyResponse,
  answer: unknown,
): Pick<Delivered, 'uploaded' | 'remark'> {
  if (status >= 300) {
    const code = codeIn(answer);
    return code === undefined ? {} : { remark: code };
  }
  if (kind === 'put') {
    const { profilePictureUrl } = (answer ?? {}) as Record<string, unknown>;
    const isShown = file !== undefined && typeof profilePictureUrl === 'string';
    return isShown ? { uploaded: { file, url: profilePictureUrl } } : {};
  }
  const left = kind === 'remove' ? namesInUse(answer) : namesNotAdded(answer);
  if (left === undefined) return { remark: 'its answer could not be read' };
  return left.length === 0 ? {} : { remark: remarks[kind](left.length) };
}

/** What the legacy service did not do, for this many names. */
const remarks = {
  ban: (count: number) => `${count} of the names could not be denied`,
  remove: (count: number) => `${count} of the names could not be removed`,
  overwrite: (count: number) =>
    `the list was not replaced: ${count} of its names ${count === 1 ? 'is' : 'are'} in use`,
};

/**
 * The contract does not show the shape of errors (section 7): the first word under a name that ends in "code"; whatever
 * else is there may be personal.
 */
function codeIn(answer: unknown, depth = 0): string | undefined {
  if (typeof answer !== 'object' || answer === null || depth > 2) return undefined;
  for (const [name, value] of Object.entries(answer)) {
    if (/code$/i.test(name) && typeof value === 'string' && /^[\w.-]{1,64}$/.test(value)) return value;
    const inner = codeIn(value, depth + 1);
    if (inner !== undefined) return inner;
  }
  return undefined;
}
