import { RE2JS } from 're2js';
import { getOrInsert } from '../lib/collections/get-or-insert.ts';

/** How an organization decides whether two names are the same (RFC 8265; openapi.yaml, "Usernames"). */
export type UsernameComparison = 'exact' | 'case-insensitive';

/** An organization's rules for a name that is being set. Denied and replacement names need not follow them. */
export interface UsernameRules {
  /** Least and greatest length, in code points. */
  minLength: number;
  maxLength: number;
  /** An RE2 pattern matched against the whole name. */
  pattern?: string | undefined;
}

/** The greatest length of any name, denied and replacement names included, in code points. */
export const maxNameLength = 256;

const controlCharacter = /\p{Cc}/u;

/**
 * What is wrong with a name by the limits that no organization can lift: well-formed Unicode, no control characters, 1
 * to 256 code points. Undefined if nothing is.
 */
export function nameFault(name: string): string | undefined {
  if (name.length === 0) return 'must not be empty';
  if (!name.isWellFormed()) return 'must be well-formed Unicode';
  if (controlCharacter.test(name)) return 'must not contain control characters';
  if (codePoints(name) > maxNameLength) return `must be at most ${maxNameLength} characters long`;
  return undefined;
}

// eslint-disable-next-line no-control-regex
const ascii = /^[\0-\x7f]*$/;

/**
 * A name in the form under which it is compared: NFC, or for case-insensitive organizations RFC 8265's
 * UsernameCaseMapped (width, case, NFC), which here folds and never refuses.
 */
export function normalizedName(name: string, comparison: UsernameComparison): string {
  // Faster for ASCII, as most names are.
  if (ascii.test(name)) return comparison === 'exact' ? name : name.toLowerCase();
  if (comparison === 'exact') return name.normalize('NFC');
  return mapWidth(name).toLowerCase().normalize('NFC');
}

/** Why the organization's rules refuse this name, or undefined if they allow it. */
export function ruleFault(name: string, rules: UsernameRules): string | undefined {
  const length = codePoints(name);
  if (length < rules.minLength) return `must be at least ${rules.minLength} characters long`;
  if (length > rules.maxLength) return `must be at most ${rules.maxLength} characters long`;
  if (rules.pattern !== undefined && !compiled(rules.pattern).matches(name)) {
    return `must match ${rules.pattern}`;
  }
  return undefined;
}

/** Why RE2 does not accept a pattern, or undefined if it does. */
export function patternFault(pattern: string): string | undefined {
  try {
    RE2JS.compile(pattern);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const patterns = new Map<string, RE2JS>();

function compiled(pattern: string): RE2JS {
  // Patterns come from operators; the limit only prevents many edits from accumulating.
  if (patterns.size > 1000) patterns.clear();
  return getOrInsert(patterns, pattern, () => RE2JS.compile(pattern));
}

function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** The Hangul vowels whose halfwidth forms begin at U+FFC2, with gaps. */
const vowels = 'ㅏㅐㅑㅒㅓㅔ  ㅕㅖㅗㅘㅙㅚ  ㅛㅜㅝㅞㅟㅠ  ㅡㅢㅣ';

/**
 * RFC 8265 §3.3.1: fullwidth and halfwidth characters become their decomposition mappings. NFKC gives that mapping for
 * all of them except those below, whose mappings have compatibility mappings themselves.
 */
function mapWidth(text: string): string {
  return text.replace(/[\u3000\uFF01-\uFFEE]/g, (wide) => {
    const code = wide.charCodeAt(0);
    if (code === 0xffe3) return '\u00AF';
    if (code === 0xffa0) return '\u3164';
    if (code >= 0xffa1 && code <= 0xffbe) return String.fromCharCode(code - 0xffa1 + 0x3131);
    if (code >= 0xffc2 && code <= 0xffdc) return vowels[code - 0xffc2]?.trim() || wide;
    return wide.normalize('NFKC');
  });
}
