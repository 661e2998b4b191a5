/** The source of a pattern for what precedes a password in the settings of a database connection; ignore case. */
export const passwordSetting = String.raw`(?:password|passwd|pwd)\s*=`;
