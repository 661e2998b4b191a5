import type { Request, RequestHandler } from 'express';
import { problem, ProblemError, type Problem } from '../../contract/problems.ts';
import { validateProfileChange } from '../../contract/schemas.ts';
import { toPutView, type MediaUrl } from '../../contract/views.ts';
import type { ProfileChange } from '../../domain/profile.ts';
import { putProfile as putStoredProfile, type PutOutcome } from '../../redis/profiles.ts';
import { sendJson } from '../respond.ts';
import {
  authenticateRequest,
  requireUser,
  type AuthenticationOptions,
  type Session,
} from '../authentication.ts';
import { invalidBody, type JsonReader } from '../middleware/json-body.ts';
import { readUpload } from './multipart-body.ts';
import { shedLoad } from '../middleware/load-shedding.ts';
import type { Pictures } from '../../media/lifecycle.ts';

export interface PutProfileOptions extends AuthenticationOptions {
  mediaUrl: MediaUrl;
  readJson: JsonReader;
  pictures: Pictures;
}

/** Uploads that one process reads at a time: each may hold a whole picture in memory. */
const maxUploads = 64;

/** Contract 4.2: all that a request asks for takes effect together, its picture file included, or nothing does. */
export function putProfile(options: PutProfileOptions): RequestHandler {
  const { store, pictures } = options;

  const put = async (session: Session, change: ProfileChange): Promise<PutOutcome> => {
    const { base, caller, snapshot } = session;
    const outcome = await putStoredProfile(store, base, requireUser(caller), change, snapshot);
    if (outcome.kind === 'put' && outcome.unusedFile !== undefined) {
      await pictures.discard(base, outcome.unusedFile);
    }
    return outcome;
  };

  const limitUploads = shedLoad(maxUploads);

  return async (request, response) => {
    const session = await authenticateRequest(request, response, options);
    requireUser(session.caller);
    let outcome: PutOutcome;
    if (isUpload(request)) {
      await limitUploads(request, response);
      const { file, fields } = await readUpload(request, response);
      const change = toChange(fields);
      const picture = await storePicture(pictures, session.base, file);
      outcome = await put(session, { ...change, picture: { file: picture } });
      if (outcome.kind !== 'put') await pictures.discard(session.base, picture);
    } else {
      outcome = await put(session, toChange(await options.readJson(request, response)));
    }
    if (outcome.kind !== 'put') throw new ProblemError(refusal(outcome));
    sendJson(response, 200, toPutView(outcome.profile, options.mediaUrl));
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

async function storePicture(pictures: Pictures, base: string, bytes: Buffer): Promise<string> {
  const stored = await pictures.store(base, bytes);
  switch (stored.kind) {
    case 'stored':
      return stored.file;
    case 'unsupported':
      throw new ProblemError(
        problem('unsupported-media-type', 'By its bytes the file is not a JPEG, PNG, WebP or GIF picture.'),
      );
    case 'invalid':
      throw new ProblemError(problem('invalid-image', `The picture ${stored.reason}.`));
    case 'busy':
      throw new ProblemError(problem('overloaded', 'Too many pictures are being decoded.'));
  }
}

function refusal(outcome: Exclude<PutOutcome, { kind: 'put' }>): Problem {
  switch (outcome.kind) {
    case 'not-allowed':
      return problem('username-not-allowed', `The username ${outcome.reason}.`);
    case 'denied':
      return problem('username-denied', 'This username is on the denylist of the organization.');
    case 'taken':
      return problem('username-taken', 'Another user of the organization has this username.');
    case 'object-not-found':
      return problem('object-not-found', `The object referred to as the ${outcome.field} does not exist.`);
    case 'object-not-in-collection':
      return problem(
        'object-not-in-collection',
        `The object referred to as the ${outcome.field} is not in your collection.`,
      );
    case 'busy':
      return problem('overloaded', 'Usernames of this organization are being changed in bulk just now.');
    case 'lapsed':
      return problem('overloaded', 'The picture took too long to store.');
  }
}
