/** The folder or bucket does not answer or refuses: the caller may answer 503 and log the message, one line for the operator. */
export class MediaUnavailableError extends Error {
  override readonly name = 'MediaUnavailableError';
}

/** The system's or library's short word for an error, such as ENOSPC or TimeoutError. */
export function errorCode(error: unknown): string {
  const { code, cause, name } = Object(error) as { code?: unknown; cause?: unknown; name?: unknown };
  if (typeof code === 'string' && code !== '') return code;
  if (cause !== undefined) return errorCode(cause);
  return typeof name === 'string' ? name : 'unknown error';
}
