import { readFileSync } from 'node:fs';

/** Complete code for client teams: the tests run each piece exactly as it is shown. */
export interface Snippet {
  /** What it is for, as a line above the code. */
  label: string;
  code: string;
}

/** Shows the headers of one answer. `credentials` are header lines with shell variables. */
export function curlSnippet(credentials: readonly string[]): Snippet {
  const lines = [
    'curl -s -o /dev/null -D - "$BASE_URL/api/profile/"',
    ...credentials.map((header) => `  -H "${header}"`),
  ];
  return {
    label: 'curl: the headers of one answer',
    code: `${lines.join(' \\\n')} |\n  grep -iE '^(deprecation|sunset|link):'`,
  };
}

/** The programs in snippets/. */
export const programs: readonly Snippet[] = [
  { label: 'fetch, in browsers and elsewhere: in place of fetch', code: read('fetch-and-log.mjs') },
  { label: 'Node: log-deprecated.mjs, for all calls of a program', code: read('log-deprecated.mjs') },
  { label: 'Python: log_deprecated.py, for all calls by urllib', code: read('log_deprecated.py') },
];

function read(file: string): string {
  return readFileSync(new URL(`snippets/${file}`, import.meta.url), 'utf8').trimEnd();
}
