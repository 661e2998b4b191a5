import { randomBytes } from 'node:crypto';

/** The four kinds of picture the bridge keeps, by file extension, with their media types. */
export const pictureTypes = {
  jpg: 'image/jpeg',
  png: 'image/png',
  webp: 'image/webp',
  gif: 'image/gif',
} as const;

export type PictureExtension = keyof typeof pictureTypes;
export type PictureType = (typeof pictureTypes)[PictureExtension];

// 22 characters of base64url are the 16 random bytes of newPictureName.
const ownName = /^[A-Za-z0-9_-]{22}\.(?<extension>jpg|png|webp|gif)$/;

/** A new file name that nobody can guess (128 random bits) and that is never used again, such as `Vq…3w.jpg`. */
export function newPictureName(extension: PictureExtension): string {
  return `${randomBytes(16).toString('base64url')}.${extension}`;
}

/**
 * The media type of a name made by newPictureName; undefined for every other string, so that nothing else
 * (a path, `..`, a NUL) ever reaches a folder or a bucket.
 */
export function pictureTypeOf(name: string): PictureType | undefined {
  const extension = ownName.exec(name)?.groups?.['extension'];
  return extension === undefined ? undefined : pictureTypes[extension as PictureExtension];
}
