import { InvalidArgumentError } from 'commander';
import { parseInstant, parseWindow, type Parsed } from '../../../lib/iso8601.ts';
import { parseLink } from '../../../deprecation/policy/links.ts';

/** Checks a time; the text is kept as given. */
export const readTime = readable(parseInstant);

/** Checks a link. */
export const readLink = readable(parseLink);

/** Collects windows: START/DURATION or START/END. */
export const collectWindows = collect(readable(parseWindow));

/** Collects windows, or only their starts. */
export const collectWindowNames = collect(
  readable((text) => (text.includes('/') ? parseWindow(text) : parseInstant(text))),
);

/** Collects the values of a repeatable option. */
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
