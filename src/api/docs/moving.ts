import { html, type Content, type Html } from '../../lib/html.ts';
import type { ContractDocument } from '../../contract/document.ts';
import { codeBlock, phrase } from './html.ts';
import { credentialHeaders, type Placed } from './operations.ts';
import { table } from './reference.ts';
import { curlSnippet, fetchSnippet, nodeSnippet, pythonSnippet } from './snippets.ts';
import { successors } from './successors.ts';

const code = (text: string): Html => html`<code>${text}</code>`;

/** For the teams that still call: what the answers tell them, how to log it, and what to use instead. */
export function movingSection(document: ContractDocument, operations: readonly Placed[]): Html {
  const deprecated = operations.filter(({ operation }) => operation.deprecated === true);
  const snippets = [curlSnippet(credentialHeaders(document)), fetchSnippet, nodeSnippet, pythonSnippet];
  return html`<section id="moving">
    <h2>Moving away</h2>
    <h3>What the answers tell you</h3>
    ${table('What the deprecation headers mean', ['Answer', 'What it means for you'], meanings)}
    <h3>See it in your logs</h3>
    <p>
      Every answer of this interface has these headers, errors included. The code below tells once for each
      path; it changes nothing about the calls, and logs no key. Pages of other origins can read the headers
      where the operator lets their origin call.
    </p>
    ${snippets.map((snippet) => codeBlock(snippet.label, snippet.code))}
    <h3>What replaces each operation</h3>
    <p>
      The successor holds the same data as key structures. Unless the operator chose another prefix,
      ${code('{org}')} stands for ${code('pb:{<organization id>}:')}, so that the profile of ${code('u-1')} in
      ${code('acme')} is ${code('pb:{acme}:p:u-1')}. The bridge's ${code('src/redis/README.md')} has every key
      and field.
    </p>
    ${table('What replaces each operation', ['Operation', 'Key structures'], deprecated.map(replacement))}
  </section>`;
}

const meanings: [Content, Content][] = [
  [
    code('Deprecation'),
    phrase(
      'Since when it is deprecated, as `@` and seconds since 1970 (RFC 9745). The answer is as good as ever.',
    ),
  ],
  [code('Sunset'), phrase('Until when you can count on it (RFC 8594). Be gone by then.')],
  [
    code('Link'),
    phrase(
      '`rel="deprecation"` and `rel="sunset"`: where to read about it. `rel="successor-version"`: where to go (RFC 8288).',
    ),
  ],
  [
    html`410 <a href="#problem-brownout"><code>brownout</code></a>`,
    phrase('Off for a while, on purpose, so that forgotten callers notice. Back after `Retry-After`.'),
  ],
  [html`410 <a href="#problem-sunset"><code>sunset</code></a>`, 'Gone for good.'],
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
