/** An error that an operator can correct: the message is one line with the remedy, free of secrets. */
export class MigrationError extends Error {
  override readonly name: string = 'MigrationError';
}

/** One that another attempt would meet again. */
export class FinalError extends MigrationError {}

/** A mistake in what was asked for, found before anything was done. */
export class UsageError extends MigrationError {
  override readonly name = 'UsageError';
}
