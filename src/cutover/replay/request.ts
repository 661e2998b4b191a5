import { randomUUID } from 'node:crypto';
import type { ProfileChange } from '../../domain/profile.ts';
import type { LegacyRequest } from '../forward/legacy.ts';

/** A complete request to the legacy service. */
export type Demand =
  | { kind: 'put'; change: ProfileChange; file?: PictureFile }
  | { kind: 'ban'; replacements: readonly (readonly [username: string, replacement: string])[] }
  | { kind: 'remove' | 'overwrite'; usernames: readonly string[] };

interface PictureFile {
  name: string;
  bytes: Buffer;
  /** Its media type. */
  type: string;
}

/** The request of the contract (4.2 to 4.5) that asks for this. */
export async function toLegacyRequest(
  demand: Demand,
  credentials: readonly string[],
): Promise<LegacyRequest> {
  const [method, path] = route[demand.kind];
  const { type, body } = await encode(demand);
  const described = ['content-type', type, 'content-length', String(body.length)];
  const headers = [...credentials, ...described, 'via', '1.1 profile-bridge', 'x-request-id', randomUUID()];
  return { method, path, headers, body };
}

const route: Record<Demand['kind'], [LegacyRequest['method'], path: string]> = {
  put: ['PUT', '/api/profile/'],
  ban: ['POST', '/api/profile/username/deny/'],
  remove: ['DELETE', '/api/profile/username/deny/'],
  overwrite: ['PUT', '/api/profile/username/denylist/'],
};

async function encode(demand: Demand): Promise<{ type: string; body: Buffer }> {
  switch (demand.kind) {
    case 'put':
      return demand.file === undefined
        ? json(fieldsOf(demand.change))
        : await multipart(fieldsOf(demand.change), demand.file);
    case 'ban': {
      // Built as text: an object would move names such as `7` to the front, and lose names such as `__proto__`.
      const properties = demand.replacements.map((pair) =>
        pair.map((name) => JSON.stringify(name)).join(':'),
      );
      return { type: 'application/json', body: Buffer.from(`{${properties.join(',')}}`) };
    }
    default:
      return json(demand.usernames);
  }
}

/** The fields of contract 4.2. A file has a part of its own. */
function fieldsOf({ username, picture, avatar }: ProfileChange): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  if (username !== undefined) fields['username'] = username;
  if (picture === null) fields['profilePictureObjectDefinitionId'] = null;
  else if (picture !== undefined && 'reference' in picture)
    fields['profilePictureObjectDefinitionId'] = picture.reference;
  if (avatar !== undefined) fields['avatarObjectDefinitionId'] = avatar;
  return fields;
}

function json(value: unknown): { type: string; body: Buffer } {
  return { type: 'application/json', body: Buffer.from(JSON.stringify(value)) };
}

async function multipart(
  fields: Record<string, unknown>,
  { name, bytes, type }: PictureFile,
): Promise<{ type: string; body: Buffer }> {
  const form = new FormData();
  for (const [field, value] of Object.entries(fields)) {
    form.append(field, typeof value === 'string' ? value : JSON.stringify(value));
  }
  form.append('profilePicture', new Blob([new Uint8Array(bytes)], { type }), name);
  const encoded = new Response(form);
  return {
    type: encoded.headers.get('content-type') ?? '',
    body: Buffer.from(await encoded.arrayBuffer()),
  };
}
