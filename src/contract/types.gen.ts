/* Generated from openapi.yaml by `npm run generate`. Do not edit. */

/**
 * A username. Well-formed Unicode of 1 to 256 code points, without control characters.
 */
export type Username = string;
export type ObjectId = string;
/**
 * A list of usernames. Duplicates count once.
 */
export type Usernames = Username[];
/**
 * The stable code of an error. `malformed-request`, `request-timeout` and `headers-too-large` can occur on any connection, before the operation is known.
 */
export type ProblemCode =
  | 'malformed-request'
  | 'invalid-json'
  | 'invalid-body'
  | 'invalid-multipart'
  | 'missing-credentials'
  | 'invalid-api-key'
  | 'admin-required'
  | 'no-user'
  | 'profile-not-found'
  | 'not-found'
  | 'method-not-allowed'
  | 'request-timeout'
  | 'username-taken'
  | 'usernames-in-use'
  | 'sunset'
  | 'brownout'
  | 'payload-too-large'
  | 'unsupported-media-type'
  | 'username-not-allowed'
  | 'username-denied'
  | 'object-not-found'
  | 'object-not-in-collection'
  | 'invalid-image'
  | 'rate-limited'
  | 'headers-too-large'
  | 'internal-error'
  | 'legacy-unavailable'
  | 'store-unavailable'
  | 'overloaded'
  | 'replay-unavailable'
  | 'legacy-timeout';

/**
 * Reference to an image object.
 */
export interface ObjectReference {
  /**
   * ID of the datasource that holds the image object.
   */
  datasourceId: string;
  /**
   * ID of the object definition of the image object.
   */
  objectDefinitionId: string;
}
/**
 * A profile, as GET returns it.
 */
export interface Profile {
  username?: Username;
  /**
   * Absolute URL of the profile picture.
   */
  profilePictureUrl?: string;
  /**
   * The avatar. The URL is absent if the object is no longer known.
   */
  avatar?: {
    /**
     * URL of the avatar's image.
     */
    url?: string;
    datasourceId: ObjectId;
    objectDefinitionId: ObjectId;
  };
  /**
   * Linked EVM wallet address. Present only if verified.
   */
  evmLinkedWalletAddress?: string;
}
/**
 * A profile, as PUT returns it.
 */
export interface ChangedProfile {
  username?: Username;
  /**
   * Absolute URL of the profile picture.
   */
  profilePictureUrl?: string;
  avatarObjectDefinitionId?: ObjectReference;
}
/**
 * The fields to change. All are optional; unknown fields are ignored.
 */
export interface ProfileChange {
  username?: Username;
  /**
   * Must not be set in a JSON body. Send a picture file as multipart/form-data.
   */
  profilePicture?: never;
  /**
   * Chooses the profile picture from the user's collection. Null removes it.
   */
  profilePictureObjectDefinitionId?: ObjectReference | null;
  /**
   * Sets the avatar. Null removes it.
   */
  avatarObjectDefinitionId?: ObjectReference | null;
}
/**
 * A picture file, and other fields to change. The file may have any field name; a part without a filename is not a file. The other parts are text in UTF-8, at most 16 of at most 64 KiB each; unknown ones are ignored, but a name that denotes a large array or a deep object, such as `a[1000]`, is refused.
 */
export interface ProfileUpload {
  /**
   * The file. JPEG, PNG, WebP or GIF, at most 5 MiB and 40,000,000 pixels.
   */
  profilePicture?: string;
  username?: Username;
  /**
   * Sets the avatar, as JSON. Null removes it.
   */
  avatarObjectDefinitionId?: ObjectReference | null;
}
/**
 * Each property name is a username to deny, each value its replacement.
 */
export interface Replacements {
  [k: string]: Username;
}
/**
 * The usernames that could not be added, and why.
 */
export interface BanOutcome {
  /**
   * The usernames that could not be added.
   *
   * @minItems 1
   */
  usernamesNotAdded: Username[];
  /**
   * The reason for each of them.
   *
   * @minItems 1
   */
  failures: BanFailure[];
}
/**
 * Why one username could not be added.
 */
export interface BanFailure {
  username: Username;
  replacement: Username;
  /**
   * Why the replacement was rejected.
   */
  reason: 'replacement-in-use' | 'replacement-denied';
}
/**
 * The result of a removal.
 */
export interface RemovalOutcome {
  /**
   * Usernames removed from the denylist.
   */
  usernamesDeleted: Username[];
  /**
   * Usernames in use, which could not be removed.
   */
  usernamesInUse: Username[];
}
/**
 * The state of this instance.
 */
export interface Health {
  /**
   * Whether this instance serves requests, and whether everything works.
   */
  status: 'ok' | 'degraded' | 'unavailable';
  /**
   * What does not work, such as `store-unavailable`, `store-partly-unavailable`, `store-read-only`, `store-full`, `authority-unknown`, `pictures-unavailable`, `overloaded` or `draining`.
   */
  degraded?: string[];
}
/**
 * An error (RFC 9457).
 */
export interface Problem {
  /**
   * Link to the explanation of this kind of error.
   */
  type: string;
  /**
   * The kind of error, in a few words.
   */
  title: string;
  /**
   * The HTTP status code.
   */
  status: number;
  /**
   * What is wrong with this request.
   */
  detail: string;
  code: ProblemCode;
  /**
   * The ID of the request, as in the X-Request-Id header. Include it when you report a problem.
   */
  requestId: string;
  /**
   * With `invalid-body`, the violations of the schema, at most 20.
   *
   * @minItems 1
   * @maxItems 20
   */
  errors?: BodyError[];
  /**
   * With `usernames-in-use`, the usernames that are in use.
   *
   * @minItems 1
   */
  usernamesInUse?: Username[];
}
/**
 * A violation of the schema.
 */
export interface BodyError {
  /**
   * Location in the body, as a JSON pointer. Empty for the body itself.
   */
  path: string;
  /**
   * What is expected there.
   */
  message: string;
}
