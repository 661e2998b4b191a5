import { isAscii } from 'node:buffer';

/** The text of UTF-8. Text that is ASCII, as most is, takes half the memory and a fraction of the time as Latin-1. */
export function textOf(bytes: Buffer): string {
  return bytes.toString(isAscii(bytes) ? 'latin1' : 'utf8');
}
