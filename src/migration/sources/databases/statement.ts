import type { Dialect } from '../database-urls.ts';
import { SourceError } from '../source.ts';

const flatComment = String.raw`/\*(?:[^*/]|\*(?!/)|/(?!\*))*\*/`;
const nestedComment = String.raw`/\*(?:[^*/]|\*(?!/)|/(?!\*)|${flatComment})*\*/`;

/** Where a semicolon does not end the statement: in comments, and in the dialect's quoted texts. */
const tokens: Readonly<Record<Dialect, RegExp>> = {
  postgresql: new RegExp(
    String.raw`(?<ignored>\s+|--.*|${nestedComment})|[eE]'(?:[^'\\]|\\[^]|'')*'|'[^']*'|"[^"]*"` +
      String.raw`|(?<tag>\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$)[^]*?\k<tag>|\w+|[^]`,
    'g',
  ),
  mysql:
    /(?<ignored>\s+|(?:--(?!\S)|#).*|\/\*(?!M?!)[^]*?\*\/)|'(?:[^'\\]|\\[^])*'|"(?:[^"\\]|\\[^])*"|`[^`]*`|\w+|[^]/g,
};

/**
 * A query as it can stand in parentheses: without its trailing semicolons and comments. Refuses more than one
 * statement.
 */
export function plainSelect(query: string, dialect: Dialect, where: string): string {
  let first: string | undefined;
  let end = 0;
  let isClosed = false;
  for (const { index, groups, 0: token } of query.matchAll(tokens[dialect])) {
    if (groups?.['ignored'] !== undefined) continue;
    if (token === ';') {
      isClosed = true;
      continue;
    }
    if (isClosed) throw new SourceError(`${where} must be one SELECT, but something follows its semicolon`);
    if (token !== '(') first ??= token.toLowerCase();
    end = index + token.length;
  }
  if (!['select', 'with', 'values', 'table'].includes(first ?? ''))
    throw new SourceError(`${where} must be a SELECT`);
  return query.slice(0, end);
}
