import type { MediaStore } from '../../media/store.ts';
import { organizationBase } from '../../redis/keys.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { bodyOf, readJson } from '../forward/content.ts';
import { isUndelivered, type Legacy, type LegacyRequest, type LegacyResponse } from '../forward/legacy.ts';
import { namesNotAdded } from '../adopt/denylist-change.ts';
import { currentDenylist, deniedAmong } from './denied-names.ts';
import type { QueuedChange } from './queue/changes.ts';
import type { ReplayQueue } from './queue/queue.ts';
import { credentialHeaders, toLegacyRequest, type Demand } from './request.ts';
import type { Outcome } from './rules.ts';

/** What became of a change that was sent. */
export interface Delivered {
  outcome: Outcome;
  /** Where the legacy service shows the file that was uploaded. */
  pictureUrl?: string;
  /** In words: what of an accepted change the legacy service did not make, or the code of its refusal. */
  remark?: string;
}

/** What is to be sent for a change; `nothing` where its retry has nothing to say any more. */
type Prepared =
  { kind: 'demand'; demand: Demand } | { kind: 'nothing' } | { kind: 'impossible'; reason: string };

/** Sends changes to the legacy service. */
export interface Delivery {
  prepare: (change: QueuedChange) => Promise<Prepared>;
  /** The request for it, with everything in memory: it can be sent without further waiting. */
  request: (change: QueuedChange, demand: Demand, apiKey: string) => Promise<LegacyRequest>;
  send: (demand: Demand, request: LegacyRequest) => Promise<Delivered>;
  /**
   * The status of a request that changes nothing, with the key of this change: a GET of the profile, or of an
   * administrator, whose key may belong to no user, a ban of no names. Undefined where there was no response.
   */
  probe: (change: QueuedChange, apiKey: string) => Promise<number | undefined>;
}

export interface DeliveryOptions {
  store: RedisClient;
  keyPrefix: string;
  organizationHeader: string;
  legacy: Legacy;
  media: Pick<MediaStore, 'read'>;
  queue: Pick<ReplayQueue, 'readList' | 'currentProfile'>;
}

export function createDelivery(options: DeliveryOptions): Delivery {
  const { store, keyPrefix, organizationHeader, legacy, media, queue } = options;

  async function prepare(queued: QueuedChange): Promise<Prepared> {
    const { caller, change, isRetry } = queued;
    const base = organizationBase(keyPrefix, caller.organizationId);
    switch (change.kind) {
      case 'put':
        return await preparePut(queued);
      case 'ban': {
        if (!isRetry) return demand(change);
        const denied = await deniedAmong(
          store,
          base,
          change.replacements.map(([name]) => name),
        );
        const replacements = change.replacements.filter(([name]) => denied.has(name));
        return replacements.length === 0 ? { kind: 'nothing' } : demand({ kind: 'ban', replacements });
      }
      case 'remove': {
        if (!isRetry) return demand(change);
        const denied = await deniedAmong(store, base, change.usernames);
        const usernames = change.usernames.filter((name) => !denied.has(name));
        return usernames.length === 0 ? { kind: 'nothing' } : demand({ kind: 'remove', usernames });
      }
      case 'overwrite': {
        const usernames = [];
        const parts = isRetry
          ? currentDenylist(store, base)
          : queue.readList(caller.organizationId, change.list);
        for await (const part of parts) for (const name of part) usernames.push(name);
        return demand({ kind: 'overwrite', usernames });
      }
    }
  }

  /** A retry sends the whole profile as it is now. */
  async function preparePut({ caller, change, isRetry }: QueuedChange): Promise<Prepared> {
    const { organizationId, userId } = caller;
    if (change.kind !== 'put' || userId === undefined) throw new TypeError('no change of a profile');
    const wanted = isRetry ? await queue.currentProfile(organizationId, userId) : change;
    if (wanted === undefined) return { kind: 'nothing' };
    const { picture } = wanted;
    if (!picture || !('file' in picture)) return demand({ kind: 'put', change: wanted });
    const found = await media.read(picture.file);
    if (found === undefined) return { kind: 'impossible', reason: 'its picture file is gone' };
    const file = { name: picture.file, bytes: found.bytes, type: found.type };
    return demand({ kind: 'put', change: wanted, file });
  }

  return {
    prepare,
    request: async ({ caller }, wanted, apiKey) =>
      await toLegacyRequest(wanted, credentialHeaders(organizationHeader, caller.organizationId, apiKey)),
    send: async (wanted, request) => {
      let response: LegacyResponse;
      let body: Buffer | undefined;
      try {
        response = await legacy.send(request);
        body = await bodyOf(response);
      } catch (error) {
        return { outcome: { kind: isUndelivered(error) ? 'unreachable' : 'lost' } };
      }
      const answer = body?.length === 0 ? undefined : await readJson(response, body);
      return { outcome: { kind: 'answered', status: response.status }, ...read(wanted, response, answer) };
    },
    probe: async ({ caller, change }, apiKey) => {
      const headers = credentialHeaders(organizationHeader, caller.organizationId, apiKey);
      const request: LegacyRequest =
        change.kind === 'put'
          ? { method: 'GET', path: '/api/profile/', headers }
          : await toLegacyRequest({ kind: 'ban', replacements: [] }, headers);
      try {
        const response = await legacy.send(request);
        await bodyOf(response);
        return response.status;
      } catch {
        return undefined;
      }
    },
  };
}

function demand(wanted: Demand): Prepared {
  return { kind: 'demand', demand: wanted };
}

/** What a response says besides its status. */
function read(
  wanted: Demand,
  { status }: LegacyResponse,
  answer: unknown,
): Pick<Delivered, 'pictureUrl' | 'remark'> {
  if (status >= 300) {
    const code = codeIn(answer);
    return code === undefined ? {} : { remark: code };
  }
  const { profilePictureUrl, usernamesInUse } = (answer ?? {}) as Record<string, unknown>;
  if (wanted.kind === 'put' && wanted.file !== undefined && typeof profilePictureUrl === 'string') {
    return { pictureUrl: profilePictureUrl };
  }
  const left =
    wanted.kind === 'ban' ? (namesNotAdded(answer) ?? []) : wanted.kind === 'remove' ? usernamesInUse : [];
  if (!Array.isArray(left) || left.length === 0) return {};
  return {
    remark: `${left.length} of the names could not be ${wanted.kind === 'ban' ? 'denied' : 'removed'}`,
  };
}

/**
 * The code that a refusal carries. The contract does not show the shape of errors (section 7): the first word under a
 * name that ends in "code" is taken for it; whatever else is there may be personal.
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
