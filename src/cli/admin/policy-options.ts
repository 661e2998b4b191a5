import { InvalidArgumentError } from 'commander';
import { parseInstant, parseWindow, type Parsed } from '../../lib/iso8601.ts';
import { parseLink } from '../../deprecation/policy/links.ts';

/** Text that reads as a time, as it was given. */
export const readTime = readable(parseInstant);

/** Text that reads as a link. */
export const readLink = readable(parseLink);

/** One more text that reads as START/DURATION or START/END. */
export const collectWindows = collect(readable(parseWindow));

/** One more window, or only its start. */
export const collectWindowNames = collect(
  readable((text) => (text.includes('/') ? parseWindow(text) : parseInstant(text))),
);

/** One more text that `read` takes. */
export function collect(read: (text: string) => string): (text: string, before?: string[]) => string[] {
  return (text, before = []) => [...before, read(text)];
}

function readable(parse: (text: string) => Parsed<unknown>): (text: string) => string {
  return (text) => {
    const parsed = parse(text);
    if (parsed.kind === 'invalid') throw new InvalidArgumentError(`${parsed.reason}.`);
    return text;
  };
}
