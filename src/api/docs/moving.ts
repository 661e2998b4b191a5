import { html, type Content, type Html } from '../../lib/html.ts';
import type { ContractDocument } from '../../contract/document.ts';
import { codeBlock, phrase, table } from './html.ts';
import { credentialHeaders, type Placed } from './operations.ts';
import { curlSnippet, programs } from './snippets.ts';

const code = (text: string): Html => html`<code>${text}</code>`;

/** For teams that still use this API: what the headers mean, how to log them, and what to use instead. */
export function movingSection(document: ContractDocument, operations: readonly Placed[]): Html {
  const deprecated = operations.filter(({ operation }) => operation.deprecated === true);
  const snippets = [curlSnippet(credentialHeaders(document)), ...programs];
  return html`<section id="moving">
    <h2>Moving away</h2>
    <h3>What the headers mean</h3>
    ${table('What the deprecation headers mean', ['Header or status', 'Meaning'], meanings)}
    <h3>Log deprecated calls</h3>
    <p>
      Every response of this API has these headers, errors included. The code below logs one warning per path.
      It does not change the calls, and it logs no API key. Pages of other origins can read the headers if the
      operator allows their origin.
    </p>
    ${snippets.map((snippet) => codeBlock(snippet.label, snippet.code))}
    <h3>What replaces each operation</h3>
    <p>
      The successor holds the same data as Redis keys. ${code('{org}')} stands for
      ${code('pb:{<organization id>}:')}, unless the operator has chosen another prefix: the profile of
      ${code('u-1')} in ${code('acme')} is ${code('pb:{acme}:p:u-1')}. The bridge's
      ${code('src/redis/README.md')} documents every key and field.
    </p>
    ${table('What replaces each operation', ['Operation', 'Keys'], deprecated.map(replacement))}
  </section>`;
}

const meanings: [Content, Content][] = [
  [
    code('Deprecation'),
    phrase(
      'When the API was deprecated: `@` and Unix seconds (RFC 9745). The response itself is unaffected.',
    ),
  ],
  [
    code('Sunset'),
    phrase('When the API is expected to become unavailable (RFC 8594). Complete your move before then.'),
  ],
  [
    code('Link'),
    phrase(
      '`rel="deprecation"` and `rel="sunset"`: the announcements. `rel="successor-version"`: the replacement (RFC 8288).',
    ),
  ],
  [
    html`410 <a href="#problem-brownout"><code>brownout</code></a>`,
    phrase(
      'Switched off temporarily, so that remaining callers notice. Available again after `Retry-After`.',
    ),
  ],
  [html`410 <a href="#problem-sunset"><code>sunset</code></a>`, 'Switched off permanently.'],
];

function replacement({ operation, method }: Placed): [Content, Content] {
  const { keys = [], note = '' } = successors[operation.operationId] ?? {};
  return [
    html`<span class="method ${method}">${method.toUpperCase()}</span>
      <a href="#${operation.operationId}">${operation.summary}</a>`,
    html`<ul class="keys">
        ${keys.map((key) => html`<li>${code(key)}</li>`)}
      </ul>
      ${phrase(note)}`,
  ];
}

/** The keys that replace an operation, and how to use them. `{org}` as in src/redis/README.md. */
interface Successor {
  keys: string[];
  /** In the Markdown of descriptions. */
  note: string;
}

/** What replaces each operation, by its id. */
export const successors: Record<string, Successor> = {
  getProfile: {
    keys: ['HASH {org}p:<user>', 'HASH {org}objects'],
    note: "The profile is one hash: `u` username; picture `pf` (file), `pr` (reference) or `pu` (URL); avatar `ar` or `au`; verified wallet `w`. A reference's URL stands in `objects`. No hash, no profile.",
  },
  putProfile: {
    keys: ['HASH {org}p:<user>', 'HASH {org}n<g>:<number>', 'HASH {org}d<g>', 'SET {org}c:<user>'],
    note: 'A username is claimed in the index `n`, in one step with `u` of the profile, unless the denylist `d` has it; `g` is `index` in `{org}settings`. Where ownership is required, a reference must be in the collection `c`.',
  },
  banUsernames: {
    keys: ['HASH {org}d<g>', 'HASH {org}n<g>:<number>', 'HASH {org}p:<user>'],
    note: 'The name goes into the denylist `d` in one step with the new name of its user, in `n` and `u`.',
  },
  removeDeniedUsernames: {
    keys: ['HASH {org}d<g>', 'HASH {org}n<g>:<number>'],
    note: 'The field leaves the denylist `d`, unless the index `n` has the name in use.',
  },
  overwriteDenylist: {
    keys: ['HASH {org}d<g>', 'HASH {org}stage', 'HASH {org}n<g>:<number>'],
    note: 'The new list is gathered in `stage`, checked against `n`, and renamed to `d`: all of it, or nothing.',
  },
};
