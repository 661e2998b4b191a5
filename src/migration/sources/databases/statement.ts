import { SourceError } from '../source.ts';

export type Dialect = 'postgresql' | 'mysql';

/**
 * A query as it can stand in parentheses: without its trailing semicolons and comments. Refuses what is more than
 * one statement. Knows the dialect's quotes and comments well enough not to be fooled by a semicolon inside one.
 */
export function plainSelect(query: string, dialect: Dialect, where: string): string {
  let end = 0;
  let closed = false;
  for (let at = 0; at < query.length;) {
    const next = skipComment(query, at, dialect);
    if (next > at) {
      at = next;
      continue;
    }
    const character = query[at] ?? '';
    if (character === ';') {
      closed = true;
      at += 1;
    } else if (/\s/.test(character)) {
      at += 1;
    } else {
      if (closed) throw new SourceError(`${where} must be one SELECT, but something follows its semicolon`);
      at = skipQuoted(query, at, dialect);
      end = at;
    }
  }
  const select = query.slice(0, end);
  if (!/^(?:\s|\(|--[^\n]*\n|#[^\n]*\n|\/\*[\s\S]*?\*\/)*(?:select|with|values|table)\b/i.test(select)) {
    throw new SourceError(`${where} must be a SELECT`);
  }
  return select;
}

/** The index behind the comment that begins here, or the same index where none does. */
function skipComment(sql: string, at: number, dialect: Dialect): number {
  const two = sql.slice(at, at + 2);
  if (two === '--' || (dialect === 'mysql' && two[0] === '#')) {
    const end = sql.indexOf('\n', at);
    return end === -1 ? sql.length : end + 1;
  }
  if (two !== '/*') return at;
  let depth = 1;
  let index = at + 2;
  while (index < sql.length && depth > 0) {
    const pair = sql.slice(index, index + 2);
    if (pair === '*/') depth -= 1;
    else if (pair === '/*' && dialect === 'postgresql') depth += 1;
    index += pair === '*/' || (pair === '/*' && dialect === 'postgresql') ? 2 : 1;
  }
  return index;
}

/** The index behind the character, or the whole quoted text, that stands here. */
function skipQuoted(sql: string, at: number, dialect: Dialect): number {
  const quote = sql[at] ?? '';
  if (quote === '$' && dialect === 'postgresql') {
    const tag = /^\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/.exec(sql.slice(at, at + 80))?.[0];
    const end = tag === undefined ? -1 : sql.indexOf(tag, at + tag.length);
    if (tag !== undefined) return end === -1 ? sql.length : end + tag.length;
  }
  if (quote !== "'" && quote !== '"' && quote !== '`') return at + 1;
  const escapes =
    dialect === 'mysql' ? quote !== '`' : quote === "'" && /(?:^|\W)[eE]$/.test(sql.slice(0, at).slice(-2));
  let index = at + 1;
  while (index < sql.length && sql[index] !== quote) index += escapes && sql[index] === '\\' ? 2 : 1;
  return Math.min(index + 1, sql.length);
}
