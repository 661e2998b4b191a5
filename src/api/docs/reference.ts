import { resolve, type ContractDocument, type Operation } from '../../contract/document.ts';
import { problemKinds } from '../../contract/problems.ts';
import { html, type Content, type Html } from '../../lib/html.ts';
import { table } from './html.ts';

/** The headers that a request needs. */
export function credentials({ components }: ContractDocument): Html {
  return table(
    'Headers of every request',
    ['Request header', 'Meaning'],
    Object.values(components.securitySchemes).map(({ name, description }) => [
      html`<code>${name}</code>`,
      description,
    ]),
  );
}

/** The headers of every response. */
export function headersSection(document: ContractDocument, operation: Operation | undefined): Html {
  const success = operation?.responses['200'];
  const headers = success === undefined ? {} : (resolve(document, success).headers ?? {});
  const rows = Object.entries(headers).map(([name, reference]): [Content, Content] => {
    const { description, example } = resolve(document, reference);
    const shown = example === undefined ? undefined : html`<code class="example">${example}</code>`;
    return [html`<code>${name}</code>`, [description, ' ', shown]];
  });
  return html`<section id="headers">
    <h2>Headers</h2>
    <p>Every response of the deprecated API has these headers, errors included.</p>
    ${table('Headers of every response', ['Response header', 'Meaning'], rows)}
  </section>`;
}

/** Every problem, under the anchor that its `type` links to. */
export function errorsSection(): Html {
  return html`<section id="errors">
    <h2>Errors</h2>
    <p>
      Errors are <code>application/problem+json</code>; their shape is <a href="#schema-Problem">Problem</a>.
      Branch on <code>code</code>, never on the text.
    </p>
    ${Object.entries(problemKinds()).map(
      ([code, { status, title, when, remedy }]) =>
        html`<section id="problem-${code}" class="entry problem">
          <h3>
            <span class="status s${String(status)[0]}">${status}</span>
            <a class="self" href="#problem-${code}"><code>${code}</code></a>
          </h3>
          <p class="title">${title}</p>
          <p>${when} <strong>${remedy}</strong></p>
        </section>`,
    )}
  </section>`;
}
