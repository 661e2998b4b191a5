import type { Request, Response } from 'express';
import { validateProfileChange } from '../../contract/schemas.ts';
import type { ProfileChange } from '../../domain/profile.ts';
import { createJsonReader, invalidBody } from '../middleware/json-body.ts';
import { readUpload } from './multipart-body.ts';

/** A PUT's change, and the picture file that came with it. */
export interface ProfileBody {
  change: ProfileChange;
  file?: Buffer;
}

/** A larger JSON body cannot be a profile. */
const maxJsonBytes = 64 * 1024;

/** Reads a body of contract 4.2 in either form. */
export function createProfileReader() {
  const readJson = createJsonReader(maxJsonBytes);
  return {
    read: async (request: Request, response: Response): Promise<ProfileBody> => {
      if (!isUpload(request)) return { change: toChange(await readJson(request, response)) };
      const { file, fields } = await readUpload(request, response);
      return { change: toChange(fields), file };
    },
  };
}

/** By its type alone: an upload whose body is missing is a broken upload. */
function isUpload(request: Request): boolean {
  return /^multipart\/form-data\s*(;|$)/i.test(request.headers['content-type'] ?? '');
}

function toChange(body: unknown): ProfileChange {
  const checked = validateProfileChange(body);
  if (!checked.ok) throw invalidBody(checked.errors);
  const { username, profilePictureObjectDefinitionId, avatarObjectDefinitionId } = checked.value;
  const change: ProfileChange = {};
  if (username !== undefined) change.username = username;
  if (profilePictureObjectDefinitionId !== undefined) {
    change.picture = profilePictureObjectDefinitionId && { reference: profilePictureObjectDefinitionId };
  }
  if (avatarObjectDefinitionId !== undefined) change.avatar = avatarObjectDefinitionId;
  return change;
}
