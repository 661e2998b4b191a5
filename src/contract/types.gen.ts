/* Generated from openapi.yaml by `npm run generate`. Do not edit. */

/**
 * A name. Well-formed Unicode of 1 to 256 code points, without control characters.
 */
export type Username = string;
export type ObjectId = string;
/**
 * A list of usernames. Names given twice count once.
 */
export type Usernames = Username[];
/**
 * The stable code of an error. `malformed-request`, `request-timeout` and `headers-too-large` may be answered on any connection, before the request is known to be one of an operation.
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
  | 'store-unavailable'
  | 'overloaded';

/**
 * Points to an image object.
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
 * A profile, as GET answers it.
 */
export interface Profile {
  username?: Username;
  /**
   * Absolute URL of the profile picture.
   */
  profilePictureUrl?: string;
  /**
   * The avatar. The URL is absent when the object is not known any more.
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
 * A profile, as PUT answers it.
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
 * What to change. All fields are optional; fields not listed are ignored.
 */
export interface ProfileChange {
  username?: Username;
  /**
   * Must not be set in a JSON body. A picture file comes as multipart/form-data.
   */
  profilePicture?: never;
  /**
   * Takes the profile picture from the user's collection. Null unsets it.
   */
  profilePictureObjectDefinitionId?: ObjectReference | null;
  /**
   * Sets the avatar. Null unsets it.
   */
  avatarObjectDefinitionId?: ObjectReference | null;
}
/**
 * A picture file, and what to change besides. The file may stand under any field name.
 */
export interface ProfileUpload {
  /**
   * The file. JPEG, PNG, WebP or GIF, at most 5 MiB and 40,000,000 pixels.
   */
  profilePicture?: string;
  username?: Username;
  /**
   * Sets the avatar, as a JSON text. Null unsets it.
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
   * What is wrong with the replacement.
   */
  reason: 'replacement-in-use' | 'replacement-denied';
}
/**
 * What became of the usernames to remove.
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
   * Whether everything works.
   */
  status: 'ok' | 'degraded' | 'unavailable';
  /**
   * What does not work.
   */
  degraded?: string[];
}
/**
 * An error, after RFC 9457.
 */
export interface Problem {
  /**
   * Reference to the explanation of this kind of error.
   */
  type: string;
  /**
   * The kind of error, in a few words.
   */
  title: string;
  /**
   * The HTTP status again.
   */
  status: number;
  /**
   * What was wrong with this request.
   */
  detail: string;
  code: ProblemCode;
  /**
   * The request's ID, as in the X-Request-Id header. Tell it when you ask the operator.
   */
  requestId: string;
  /**
   * With `invalid-body`, the broken rules, the first 20 at most.
   *
   * @minItems 1
   * @maxItems 20
   */
  errors?: BodyError[];
  /**
   * With `usernames-in-use`, the usernames in question.
   *
   * @minItems 1
   */
  usernamesInUse?: Username[];
}
/**
 * One broken rule of a request body.
 */
export interface BodyError {
  /**
   * Where, as a JSON pointer. Empty for the whole body.
   */
  path: string;
  /**
   * What must be different there.
   */
  message: string;
}
