import { problem, ProblemError } from '../contract/problems.ts';
import type { Log } from '../log.ts';
import { newPictureName } from './names.ts';
import { decodePicture } from './picture.ts';
import type { MediaStore } from './store.ts';
import { announceMedia, forgetMedia } from './orphans.ts';
import type { Store } from '../redis/scripts.ts';

export interface Pictures {
  /**
   * Decodes and stores a picture file, and puts it to use by `use`. Where that comes back with anything but
   * `put`, no file is left behind. Where it throws, or the process dies, whether the file is in use is not known
   * here: the sweep knows.
   */
  withStored: <Outcome extends { kind: string }>(
    base: string,
    bytes: Buffer,
    use: (file: string) => Promise<Outcome>,
  ) => Promise<Outcome>;
  /** Removes a file that no profile refers to any more. A failure is left to the sweep. */
  discard: (base: string, file: string) => Promise<void>;
}

export function createPictures(store: Store, media: MediaStore, log: Log): Pictures {
  const discard = async (base: string, file: string): Promise<void> => {
    try {
      await media.remove(file);
      await forgetMedia(store, base, file);
    } catch (error) {
      log.warn('a picture file is left to the sweep', { file, reason: String(error) });
    }
  };

  return {
    discard,
    withStored: async (base, bytes, use) => {
      const picture = await decode(bytes);
      const file = newPictureName(picture.extension);
      await announceMedia(store, base, file);
      try {
        await media.save(file, picture.bytes);
      } catch (error) {
        await discard(base, file);
        throw error;
      }
      const outcome = await use(file);
      if (outcome.kind !== 'put') await discard(base, file);
      return outcome;
    },
  };
}

async function decode(bytes: Buffer) {
  const decoded = await decodePicture(bytes);
  switch (decoded.kind) {
    case 'picture':
      return decoded;
    case 'unsupported':
      throw new ProblemError(
        problem('unsupported-media-type', 'By its bytes the file is not a JPEG, PNG, WebP or GIF picture.'),
      );
    case 'invalid':
      throw new ProblemError(problem('invalid-image', `The picture ${decoded.reason}.`));
    case 'busy':
      throw new ProblemError(problem('overloaded', 'Too many pictures are being read just now.'));
  }
}
