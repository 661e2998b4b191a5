import type { Request } from 'express';
import { ProblemError } from '../../contract/problems.ts';
import { profileChangeErrors } from '../../contract/schemas.ts';
import type { ProfileChange as ChangeBody } from '../../contract/types.gen.ts';
import { toGetView, toPutView, type FileUrl } from '../../contract/views.ts';
import type { ProfileChange } from '../../domain/profile.ts';
import type { Pictures, StoredPicture } from '../../media/lifecycle.ts';
import { putProfile as put, type PutOutcome, type ReadOutcome } from '../../redis/profiles.ts';
import { isBacklogFull, isOutdated } from '../../redis/changes.ts';
import type { AuthenticatedCaller } from '../middleware/authentication.ts';
import { invalidBody, parseJson, receiveJson } from '../middleware/json-body.ts';
import type { BodyReader } from '../middleware/receive-body.ts';
import type { Answer } from '../respond.ts';
import { maxUploadBytes, readUpload } from './multipart-body.ts';
import type { RedisClient } from '../../redis/connection/client.ts';

/** The change that a PUT asks for, and the picture file that came with it. */
interface ProfileBody {
  change: ProfileChange;
  file?: Buffer;
}

/** The largest JSON body, in bytes: a larger one cannot be a profile. */
const maxJsonBytes = 64 * 1024;

/** The body of contract 4.2, in either form. */
export const profileBody: BodyReader<ProfileBody> = {
  read: async (request, response) => {
    if (!isUpload(request)) {
      const accepted = 'application/json or multipart/form-data';
      return { change: toChange(parseJson(await receiveJson(request, response, maxJsonBytes, accepted))) };
    }
    const { file, fields } = await readUpload(request, response);
    return { change: fields === undefined ? {} : toChange(fields), file };
  },
  maxBytes: (request) => (isUpload(request) ? maxUploadBytes : maxJsonBytes),
};

/** Whether a request is an upload, by its type alone: one without a body is a broken upload. */
function isUpload(request: Request): boolean {
  return /^multipart\/form-data\s*(;|$)/i.test(request.headers['content-type'] ?? '');
}

function toChange(body: unknown): ProfileChange {
  const errors = profileChangeErrors(body);
  if (errors.length > 0) throw invalidBody(errors);
  const { username, profilePictureObjectDefinitionId, avatarObjectDefinitionId } = body as ChangeBody;
  const change: ProfileChange = {};
  if (username !== undefined) change.username = username;
  if (profilePictureObjectDefinitionId !== undefined) {
    change.picture = profilePictureObjectDefinitionId && { reference: profilePictureObjectDefinitionId };
  }
  if (avatarObjectDefinitionId !== undefined) change.avatar = avatarObjectDefinitionId;
  return change;
}

export interface ProfileOptions {
  store: RedisClient;
  pictures: Pictures;
  fileUrl: FileUrl;
}

/** The handlers of GET and PUT. */
export function createProfileHandlers({ store, pictures, fileUrl }: ProfileOptions) {
  return {
    /** Contract 4.1. */
    getProfile: ({ found }: AuthenticatedCaller<ReadOutcome>): Answer =>
      found.kind === 'profile'
        ? { kind: 'json', body: toGetView(found.profile, fileUrl) }
        : new ProblemError('profile-not-found', 'You have no profile yet.'),
    /**
     * Contract 4.2: all that a request asks for takes effect together, its picture file included, or nothing does. A
     * file that no profile refers to in the end is removed at once; if that fails, or the outcome is unknown, the sweep
     * removes it (media/lifecycle.ts).
     */
    putProfile: async (
      { base, found }: AuthenticatedCaller,
      { change, file }: ProfileBody,
    ): Promise<Answer> => {
      const { caller, snapshot, at } = found;
      const stored = file && (await pictures.store(base, caller.keyId, file, at));
      if (stored !== undefined && stored.kind !== 'stored') return pictureProblem(stored);
      const whole = stored === undefined ? change : { ...change, picture: { file: stored.file } };
      const discard = async (unused: string | undefined): Promise<void> => {
        if (unused !== undefined) await pictures.discard(base, unused);
      };
      const outcome = await put(store, base, caller.userId ?? '', whole, snapshot).catch(
        async (error: unknown) => {
          // The script has changed nothing.
          if (isBacklogFull(error) || isOutdated(error)) await discard(stored?.file);
          throw error;
        },
      );
      await discard(outcome.kind === 'put' ? outcome.unusedFile : stored?.file);
      if (outcome.kind !== 'put') return outcomeProblem(outcome);
      return { kind: 'json', body: toPutView(outcome.profile, fileUrl) };
    },
  };
}

function pictureProblem(picture: Exclude<StoredPicture, { kind: 'stored' }>): ProblemError {
  switch (picture.kind) {
    case 'unsupported':
      return new ProblemError(
        'unsupported-media-type',
        'The content of the file is not JPEG, PNG, WebP or GIF.',
      );
    case 'invalid':
      return new ProblemError('invalid-image', `The picture ${picture.reason}.`);
    case 'busy':
      return new ProblemError(
        'overloaded',
        picture.limit === 'sender'
          ? 'Too many pictures are being sent at the same time with this API key.'
          : 'Too many pictures are being decoded.',
      );
  }
}

function outcomeProblem(outcome: Exclude<PutOutcome, { kind: 'put' }>): ProblemError {
  switch (outcome.kind) {
    case 'not-allowed':
      return new ProblemError('username-not-allowed', `The username ${outcome.reason}.`);
    case 'denied':
      return new ProblemError('username-denied', 'This username is on the denylist of the organization.');
    case 'taken':
      return new ProblemError('username-taken', 'Another user of the organization has this username.');
    case 'object-not-found':
    case 'object-not-in-collection': {
      const fault = outcome.kind === 'object-not-found' ? 'does not exist' : 'is not in your collection';
      return new ProblemError(outcome.kind, `The object referred to as the ${outcome.field} ${fault}.`);
    }
    case 'busy':
      return new ProblemError('overloaded', 'Usernames of this organization are being changed in bulk.');
    case 'lapsed':
      return new ProblemError('overloaded', 'The picture took too long to store.');
  }
}
