/** The folder or bucket does not answer or refuses: the caller may answer 503 and log the message, one line for the operator. */
export class MediaUnavailableError extends Error {
  override readonly name = 'MediaUnavailableError';
}

/** The system's or library's short word for an error, such as ENOSPC or AccessDenied. */
export function errorCode(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  if ('code' in error && typeof error.code === 'string' && error.code !== '') return error.code;
  return error.cause instanceof Error ? errorCode(error.cause) : error.name;
}
