import type { ContractDocument } from '../../contract/document.ts';
import { html, type Html } from '../../lib/html.ts';
import { statusLabel, table } from './html.ts';

/** The headers that a request needs. */
export function credentialsTable({ components }: ContractDocument): Html {
  const schemes = Object.values(components.securitySchemes);
  return table(
    'Headers of every request',
    ['Request header', 'Meaning'],
    schemes.map(({ name, description }) => [html`<code>${name}</code>`, description]),
  );
}

/** Every problem, under the anchor that its `type` links to. */
export function errorsSection({ components }: ContractDocument): Html {
  return html`<section id="errors">
    <h2>Errors</h2>
    <p>
      Errors are <code>application/problem+json</code>; their shape is <a href="#schema-Problem">Problem</a>.
      Branch on <code>code</code>, never on the text.
    </p>
    ${Object.entries(components['x-problems']).map(
      ([code, { status, title, when, remedy }]) =>
        html`<section id="problem-${code}" class="entry problem">
          <h3>
            ${statusLabel(status)}
            <a class="self" href="#problem-${code}"><code>${code}</code></a>
          </h3>
          <p class="title">${title}</p>
          <p>${when} <strong>${remedy}</strong></p>
        </section>`,
    )}
  </section>`;
}
