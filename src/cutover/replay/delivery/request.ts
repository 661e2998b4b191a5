import { randomUUID } from 'node:crypto';
import type { ProfileChange } from '../../../domain/profile.ts';
import type { LegacyRequest } from '../../forward/legacy.ts';
import type { AcceptedChange } from '../queue/changes.ts';

export interface EncodedBody {
  type: string;
  bytes: Buffer;
  /** The picture file in it. */
  file?: string;
  /** The fields of a profile in it. */
  fields?: ProfileChange;
}

const route: Record<AcceptedChange['kind'], [LegacyRequest['method'], path: string]> = {
  put: ['PUT', '/api/profile/'],
  ban: ['POST', '/api/profile/username/deny/'],
  remove: ['DELETE', '/api/profile/username/deny/'],
  overwrite: ['PUT', '/api/profile/username/denylist/'],
};

/** The request of the contract (4.2 to 4.5) that asks for a change of this kind. */
export function toLegacyRequest(
  kind: AcceptedChange['kind'],
  { type, bytes }: EncodedBody,
  credentials: readonly string[],
): LegacyRequest {
  const [method, path] = route[kind];
  const described = ['content-type', type, 'content-length', String(bytes.length)];
  const headers = [...credentials, ...described, 'x-request-id', randomUUID()];
  return { method, path, headers, body: bytes };
}

/**
 * The bodies of contract 4.2, which has two forms: fields in JSON, and a file by itself. A change with both needs a
 * request for each, the fields first.
 */
export async function profileBodies(
  change: ProfileChange,
  file?: EncodedBody & { name: string },
): Promise<EncodedBody[]> {
  const { username, picture, avatar } = change;
  const fields: Record<string, unknown> = {};
  if (username !== undefined) fields['username'] = username;
  if (picture === null) fields['profilePictureObjectDefinitionId'] = null;
  else if (picture !== undefined && 'reference' in picture)
    fields['profilePictureObjectDefinitionId'] = picture.reference;
  if (avatar !== undefined) fields['avatarObjectDefinitionId'] = avatar;
  const described = { ...json(fields), fields: change };
  if (file === undefined) return [described];
  const upload = await fileBody(file);
  return Object.keys(fields).length === 0 ? [upload] : [described, upload];
}

async function fileBody({ type, bytes, name }: EncodedBody & { name: string }): Promise<EncodedBody> {
  const form = new FormData();
  form.append('profilePicture', new Blob([new Uint8Array(bytes)], { type }), name);
  const encoded = new Response(form);
  return {
    type: encoded.headers.get('content-type') ?? '',
    bytes: Buffer.from(await encoded.arrayBuffer()),
    file: name,
  };
}

/** Built as text: an object would move names such as `7` to the front, and lose names such as `__proto__`. */
export function banBody(replacements: readonly [username: string, replacement: string][]): EncodedBody {
  const properties = replacements.map((pair) => pair.map((name) => JSON.stringify(name)).join(':'));
  return { type: 'application/json', bytes: Buffer.from(`{${properties.join(',')}}`) };
}

/** A value as the JSON body of a request. */
export function json(value: unknown): EncodedBody {
  return { type: 'application/json', bytes: Buffer.from(JSON.stringify(value)) };
}
