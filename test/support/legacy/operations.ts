import type { IncomingHttpHeaders } from 'node:http';
import { LegacyError, type LegacyChange, type LegacyOrganization } from './organization.ts';

/** A request as it arrived. */
export interface Received {
  method: string;
  url: string;
  rawHeaders: readonly string[];
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export interface LegacyKey {
  organization: string;
  role: 'player' | 'admin';
  user?: string;
}

/** A response; without an answer it has no body. */
interface Reply {
  status: number;
  answer?: unknown;
}

/** What the stand-in keeps: its API keys, and its organizations, each made when it is first asked for. */
interface LegacyData {
  keys: Map<string, LegacyKey>;
  organization: (id: string) => LegacyOrganization;
}

/** Carries out a request for a path below the prefix: one of the contract's operations, or an error of its own. */
export async function operate(
  data: LegacyData,
  request: Received,
  path: string,
  lagMs: number,
): Promise<Reply> {
  try {
    return await operateOn(data, request, path, lagMs);
  } catch (error) {
    if (!(error instanceof LegacyError)) throw error;
    return {
      status: error.status,
      answer: { error: { legacyCode: error.legacyCode, text: error.message } },
    };
  }
}

async function operateOn(
  { keys, organization }: LegacyData,
  { method, headers, body }: Received,
  path: string,
  lagMs: number,
): Promise<Reply> {
  const key = keys.get(String(headers['x-api-key']));
  const claimed = Buffer.from(String(headers['x-platform-organization-id']), 'latin1').toString();
  if (key === undefined || key.organization !== claimed) throw new LegacyError(401, 'E_KEY', 'who are you?');
  const here = organization(key.organization);
  const route = `${method} ${(path.split('?')[0] ?? '').replace(/\/?$/, '/')}`;
  if (route.endsWith('/api/profile/')) {
    const { user } = key;
    if (user === undefined) throw new LegacyError(403, 'E_NO_USER', 'this key is nobody');
    if (method === 'PUT') {
      const { username, profilePictureUrl, avatar } = here.put(user, await changeIn(headers, body));
      const { url: _url, ...avatarObjectDefinitionId } = avatar ?? {};
      return {
        status: 200,
        answer: { username, profilePictureUrl, ...(avatar && { avatarObjectDefinitionId }) },
      };
    }
    const profile = here.read(user, lagMs);
    if (profile === undefined) throw new LegacyError(404, 'E_NO_PROFILE', 'nothing here');
    return { status: 200, answer: profile };
  }
  if (key.role !== 'admin') throw new LegacyError(403, 'E_ADMIN', 'admins only');
  switch (route) {
    case 'POST /api/profile/username/deny/': {
      const notAdded = here.ban(parse(body) as Record<string, string>);
      return notAdded.length === 0 ? { status: 204, answer: undefined } : { status: 200, answer: notAdded };
    }
    case 'DELETE /api/profile/username/deny/':
      return { status: 200, answer: here.undeny(parse(body) as string[]) };
    case 'PUT /api/profile/username/denylist/':
      here.overwrite(parse(body) as string[]);
      return { status: 204, answer: undefined };
    default:
      throw new LegacyError(404, 'E_PATH', 'no such path');
  }
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString()) as unknown;
  } catch {
    throw new LegacyError(400, 'E_JSON', 'unreadable');
  }
}

/** As the two forms of contract 4.2: with a file, it passes over all other fields. */
async function changeIn(headers: IncomingHttpHeaders, body: Buffer): Promise<LegacyChange> {
  const type = headers['content-type'] ?? '';
  if (!type.startsWith('multipart/form-data')) return parse(body) as LegacyChange;
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData();
  for (const [, file] of form) {
    if (typeof file !== 'string')
      return { profilePicture: { bytes: new Uint8Array(await file.arrayBuffer()) } };
  }
  return {};
}
