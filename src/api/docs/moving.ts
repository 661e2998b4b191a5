import { readFileSync } from 'node:fs';
import {
  contractDocument,
  resolveReference,
  type ContractDocument,
  type PlacedOperation,
} from '../../contract/document.ts';
import { html, type Content, type Html } from '../../lib/html.ts';
import { codeBlock, methodLabel, phrase, table } from './html.ts';

const code = (text: string): Html => html`<code>${text}</code>`;

/** Complete programs for client teams; the tests run each file exactly as it is shown. */
const snippets = [
  { label: 'curl: the headers of one response', file: 'headers.sh' },
  { label: 'Browsers and elsewhere: fetchAndLog, to be called in place of fetch', file: 'fetch-and-log.mjs' },
  { label: 'Node: log-deprecated.mjs, for all calls of a program', file: 'log-deprecated.mjs' },
  { label: 'Python: log_deprecated.py, for all calls made with urllib', file: 'log_deprecated.py' },
].map(({ label, file }) => ({
  label,
  text: readFileSync(new URL(`snippets/${file}`, import.meta.url), 'utf8').trimEnd(),
}));

/** For teams that still use this API: what the headers mean, how to log them, and what to use instead. */
export function movingSection(document: ContractDocument, operations: readonly PlacedOperation[]): Html {
  const organizationHeader = ({ components }: ContractDocument) =>
    components.securitySchemes.organization.name;
  const deprecated = operations.filter(({ operation }) => operation.deprecated === true);
  return html`<section id="moving">
    <h2>Moving away</h2>
    <h3 id="headers">What the headers mean</h3>
    <p>Every response of the deprecated API has these headers, errors included.</p>
    ${table('Headers of every response', ['Response header', 'Meaning'], headerRows(document, deprecated))}
    <h3>Log deprecated calls</h3>
    <p>
      Each program below logs one warning per method and path. It does not change the calls, and it logs no
      API key. Pages of other origins can read the headers if the operator allows their origin.
    </p>
    ${snippets.map(({ label, text }) =>
      codeBlock(label, text.replaceAll(organizationHeader(contractDocument()), organizationHeader(document))),
    )}
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

/** The headers of the first operation stand for those of all. */
function headerRows(
  document: ContractDocument,
  operations: readonly PlacedOperation[],
): [Content, Content][] {
  const success = operations[0]?.operation.responses['200'];
  const headers = success === undefined ? {} : (resolveReference(document, success).headers ?? {});
  return Object.entries(headers).map(([name, reference]) => {
    const { description, example } = resolveReference(document, reference);
    const shown = example !== undefined && html`<code class="example">${example}</code>`;
    return [code(name), [phrase(description), ' ', shown]];
  });
}

function replacement({ operation, method }: PlacedOperation): [Content, Content] {
  const { keys = [], note = '' } = operation['x-successor'] ?? {};
  return [
    html`${methodLabel(method)} <a href="#${operation.operationId}">${operation.summary}</a>`,
    html`<ul class="keys">
        ${keys.map((key) => html`<li>${code(key)}</li>`)}
      </ul>
      ${phrase(note)}`,
  ];
}
