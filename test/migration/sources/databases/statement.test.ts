import { describe, expect, test } from '@jest/globals';
import { plainSelect } from '../../../../src/migration/sources/databases/statement.ts';
import { messageOf } from '../reading.ts';

describe('a query', () => {
  test.each([
    ['SELECT 1', 'SELECT 1'],
    ['SELECT 1;', 'SELECT 1'],
    ['SELECT 1 ; ; -- done\n /* really */ ;\n', 'SELECT 1'],
    ['-- first\nSELECT 1', '-- first\nSELECT 1'],
    ["SELECT ';' AS a, '--' AS b, 'it''s; fine' AS c;", "SELECT ';' AS a, '--' AS b, 'it''s; fine' AS c"],
    ['SELECT 1 AS ";";', 'SELECT 1 AS ";"'],
    ['WITH x AS (SELECT 1) SELECT * FROM x;', 'WITH x AS (SELECT 1) SELECT * FROM x'],
    ['(SELECT 1) UNION (SELECT 2);', '(SELECT 1) UNION (SELECT 2)'],
    ['select 1 - -1;', 'select 1 - -1'],
  ])('%j can stand in parentheses', (query, plain) => {
    expect(plainSelect(query, 'postgresql', 'the query')).toBe(plain);
    expect(plainSelect(query, 'mysql', 'the query')).toBe(plain);
  });

  test('is read by its own dialect', () => {
    expect(plainSelect('SELECT $$;$$, $a$;$$;$a$ /* /* ; */ */;', 'postgresql', 'q')).toBe(
      'SELECT $$;$$, $a$;$$;$a$',
    );
    expect(plainSelect(String.raw`SELECT E'\';' ;`, 'postgresql', 'q')).toBe(String.raw`SELECT E'\';'`);
    expect(plainSelect(String.raw`SELECT '\' ;`, 'postgresql', 'q')).toBe(String.raw`SELECT '\'`);
    expect(plainSelect(String.raw`SELECT '\';', "\";", 1 # ; done`, 'mysql', 'q')).toBe(
      String.raw`SELECT '\';', "\";", 1`,
    );
    expect(plainSelect('SELECT 1 AS `;`;', 'mysql', 'q')).toBe('SELECT 1 AS `;`');
    // Minus minus one: in MySQL, a comment has white space after its dashes.
    expect(plainSelect('SELECT 5--1', 'mysql', 'q')).toBe('SELECT 5--1');
    expect(plainSelect('SELECT 5--\n-1 --', 'mysql', 'q')).toBe('SELECT 5--\n-1');
    // What MySQL and MariaDB run, though it looks like a comment.
    for (const run of ['SELECT 1 /*!50000 , 2 */', 'SELECT 1 /*M!100100 , 2 */'])
      expect(plainSelect(`${run} ; /* 3 */`, 'mysql', 'q')).toBe(run);
    expect(plainSelect('/* /* a */ b */ SELECT 1', 'postgresql', 'q')).toBe('/* /* a */ b */ SELECT 1');
  });

  test.each([
    '',
    ';',
    '-- nothing',
    'DELETE FROM a',
    'SELECTED',
    'DROP TABLE a; SELECT 1',
    'EXPLAIN SELECT 1',
    '# a comment of another dialect\nSELECT 1',
  ])('%j is refused', async (query) => {
    expect(await messageOf(() => plainSelect(query, 'postgresql', 'the query'))).toMatch(
      /^SourceError: the query must be/,
    );
  });

  test.each(['SELECT 1; SELECT 2', 'SELECT 1;; DROP TABLE a', "SELECT 'a'; -- b\n DELETE FROM c"])(
    'of several statements, %j, is refused',
    async (query) => {
      for (const dialect of ['postgresql', 'mysql'] as const) {
        expect(await messageOf(() => plainSelect(query, dialect, 'the query'))).toBe(
          'SourceError: the query must be one SELECT, but something follows its semicolon',
        );
      }
    },
  );
});
