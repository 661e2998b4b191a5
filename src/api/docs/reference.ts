import { resolve, type ContractDocument, type Operation } from '../../contract/document.ts';
import { problemKinds } from '../../contract/problems.ts';
import { html, type Content, type Html } from '../../lib/html.ts';

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

/** The headers that come with every answer of the interface. */
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
    <p>These come with the answers of the deprecated interface, errors included.</p>
    ${table('Headers of every answer', ['Response header', 'Meaning'], rows)}
  </section>`;
}

/** Every problem, each under the anchor its `type` points to. */
export function errorsSection(): Html {
  return html`<section id="errors">
    <h2>Errors</h2>
    <p>
      Errors are <code>application/problem+json</code>; their shape is <a href="#schema-Problem">Problem</a>.
      Branch on <code>code</code>, never on the text.
    </p>
    ${Object.entries(problemKinds).map(
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

/** A table of two columns. */
export function table(caption: string, heads: [string, string], rows: [Content, Content][]): Html {
  return html`<table>
    <caption class="unseen">
      ${caption}
    </caption>
    <thead>
      <tr>
        ${heads.map((head) => html`<th scope="col">${head}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        ([name, meaning]) =>
          html`<tr>
            <th scope="row">${name}</th>
            <td>${meaning}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}
