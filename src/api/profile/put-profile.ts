import { problem, type Problem } from '../../contract/problems.ts';
import { toPutView, type MediaUrl } from '../../contract/views.ts';
import type { Pictures, StoredPicture } from '../../media/lifecycle.ts';
import { putProfile as put, type PutOutcome } from '../../redis/profiles.ts';
import type { Store } from '../../redis/scripts.ts';
import type { Session } from '../authentication.ts';
import type { Answer } from '../respond.ts';
import type { ProfileBody } from './body.ts';

interface PutProfileOptions {
  store: Store;
  pictures: Pictures;
  mediaUrl: MediaUrl;
}

/**
 * Contract 4.2: all that a request asks for takes effect together, its picture file included, or nothing does. A file
 * that is stored but not referenced in the end is removed at once; where that fails, or the outcome is unknown, by
 * the sweep (media/lifecycle.ts).
 */
export function putProfile({ store, pictures, mediaUrl }: PutProfileOptions) {
  return async ({ base, found }: Session, { change, file }: ProfileBody): Promise<Answer> => {
    const { caller, snapshot } = found;
    const userId = caller.userId ?? '';
    if (file === undefined) return await toAnswer(base, await put(store, base, userId, change, snapshot));

    const stored = await pictures.store(base, file);
    if (stored.kind !== 'stored') return refused(pictureProblem(stored));
    const picture = { file: stored.file };
    const outcome = await put(store, base, userId, { ...change, picture }, snapshot);
    if (outcome.kind !== 'put') await pictures.discard(base, stored.file);
    return await toAnswer(base, outcome);
  };

  async function toAnswer(base: string, outcome: PutOutcome): Promise<Answer> {
    if (outcome.kind !== 'put') return refused(outcomeProblem(outcome));
    if (outcome.unusedFile !== undefined) await pictures.discard(base, outcome.unusedFile);
    return { kind: 'json', body: toPutView(outcome.profile, mediaUrl) };
  }
}

function refused(reason: Problem): Answer {
  return { kind: 'problem', problem: reason };
}

function pictureProblem(picture: Exclude<StoredPicture, { kind: 'stored' }>): Problem {
  switch (picture.kind) {
    case 'unsupported':
      return problem(
        'unsupported-media-type',
        'By its bytes the file is not a JPEG, PNG, WebP or GIF picture.',
      );
    case 'invalid':
      return problem('invalid-image', `The picture ${picture.reason}.`);
    case 'busy':
      return problem('overloaded', 'Too many pictures are being decoded.');
  }
}

function outcomeProblem(outcome: Exclude<PutOutcome, { kind: 'put' }>): Problem {
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
      return problem('overloaded', 'Usernames of this organization are being changed in bulk.');
    case 'lapsed':
      return problem('overloaded', 'The picture took too long to store.');
  }
}
