/** A text that is not one array, or one object, of strings; or no JSON, or not even UTF-8. */
export class NotFlat extends Error {}

/** Bytes decoded at a time. */
const piece = 64 * 1024;

/** Longer than a name of 256 characters can be written; what takes more space is left to the plain parser. */
const longestToken = 4096;

/** Which punctuation may come next, after a string, in an array and in an object. */
const marksAfter: Record<string, Record<string, string>> = {
  '[': { '[': ',]', ',': ',]' },
  '{': { '{': ':', ':': ',}', ',': ':' },
};

/**
 * The strings in a JSON text (RFC 8259) that is one array of strings, or one object of strings: then each property's
 * name and its value in turn, as they stand in the text. Nothing is kept of what was read: reading 200,000 strings
 * can be interrupted anywhere, and leaves the garbage collector nothing to move. Throws NotFlat where the text is
 * anything else, or has a control character in a string; the strings before that have been handed out by then.
 */
export function* stringsIn(bytes: Uint8Array, open: '[' | '{'): Generator<string, void> {
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  const close = open === '[' ? ']' : '}';
  let last = '';
  let rest = '';
  for (let at = 0; at < bytes.length; at += piece) {
    const more = { stream: at + piece < bytes.length };
    const text = rest + orNotFlat(() => utf8.decode(bytes.subarray(at, at + piece), more));
    let end = 0;
    for (;;) {
      let next = afterSpace(text, end);
      let string: string | undefined;
      if (text[next] === '"') {
        const quote = closingQuote(text, next + 1);
        if (quote === -1) break;
        string = text.slice(next + 1, quote);
        next = afterSpace(text, quote + 1);
      }
      const mark = text[next];
      if (mark === undefined) break;
      if (string !== undefined) {
        const written = string;
        if (marksAfter[open]?.[last]?.includes(mark) !== true) throw new NotFlat();
        if (controlCharacter.test(written)) throw new NotFlat();
        yield written.includes('\\') ? orNotFlat(() => JSON.parse(`"${written}"`) as string) : written;
      } else if (!(last === '' && mark === open) && !(last === open && mark === close)) {
        throw new NotFlat();
      }
      last = mark;
      end = next + 1;
    }
    rest = text.slice(end);
    if (rest.length > longestToken) throw new NotFlat();
  }
  if (last !== close || afterSpace(rest, 0) < rest.length) throw new NotFlat();
}

/** JSON wants most of them escaped, and no name has any. */
const controlCharacter = /\p{Cc}/u;

function orNotFlat<Result>(read: () => Result): Result {
  try {
    return read();
  } catch {
    throw new NotFlat();
  }
}

function afterSpace(text: string, at: number): number {
  while (' \t\n\r'.includes(text[at] ?? '.')) at++;
  return at;
}

/** -1 where the string goes on beyond this text. */
function closingQuote(text: string, start: number): number {
  for (let quote = text.indexOf('"', start); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let escapes = 0;
    while (text[quote - 1 - escapes] === '\\') escapes++;
    if (escapes % 2 === 0) return quote;
  }
  return -1;
}
