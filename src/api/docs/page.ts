import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { operationsOf, type ContractDocument } from '../../contract/document.ts';
import type { DeprecationPolicy } from '../../deprecation/policy/policy.ts';
import { baseStyle, html, iconSvg, link, renderPage, skipLink, type Html } from '../../lib/html.ts';
import { methodLabel, phrase, prose, statusLabel, table } from './html.ts';
import { movingSection } from './moving.ts';
import { deprecationSection } from './notice.ts';
import { operationSection } from './operations.ts';
import { schemaSections } from './schemas.ts';

const style = baseStyle + readFileSync(new URL('style.css', import.meta.url), 'utf8');
// Kept apart from the template, since whitespace around the text would change its hash.
const styleElement: Html = { markup: `<style>${style}</style>` };

/** The Content-Security-Policy to send with the page: it allows its own style, its icon, and nothing else. */
export const docsContentSecurityPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The documentation page: one self-contained HTML document, without scripts and without outside assets. */
export function renderDocs(document: ContractDocument, policy: DeprecationPolicy, baseUrl = ''): string {
  const contractLink = link(`${baseUrl}/openapi.yaml`, 'openapi.yaml');
  const operations = operationsOf(document).filter(({ method }) => method !== 'head' && method !== 'options');
  const groups = document.tags.map((tag) => ({
    ...tag,
    id: `tag-${tag.name.toLowerCase()}`,
    operations: operations.filter(({ operation }) => operation.tags.includes(tag.name)),
  }));
  const { info } = document;
  const head = html`<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(iconSvg)}" />
    ${styleElement}`;
  const body = html`${skipLink}
    <nav aria-label="Contents">
      <p class="brand"><a href="#top">${info.title}</a></p>
      <ul>
        <li><a href="#deprecation">Deprecation</a></li>
        <li><a href="#start">Getting started</a></li>
        ${groups.map(
          (group) =>
            html`<li>
              <a href="#${group.id}">${group.name}</a>
              <ul>
                ${group.operations.map(
                  ({ method, operation }) =>
                    html`<li>
                      <a href="#${operation.operationId}">${methodLabel(method)} ${operation.summary}</a>
                    </li>`,
                )}
              </ul>
            </li>`,
        )}
        <li><a href="#moving">Moving away</a></li>
        <li><a href="#errors">Errors</a></li>
        <li><a href="#schemas">Schemas</a></li>
      </ul>
    </nav>
    <main id="content">
      <header id="top">
        <h1>${info.title}</h1>
        <p class="lead">${info.summary}</p>
        <p class="meta">Version ${info.version} · ${contractLink}</p>
      </header>
      ${deprecationSection(policy, baseUrl)}
      <section id="start">
        <h2>Getting started</h2>
        ${prose(info.description)} ${credentialsTable(document)}
      </section>
      ${groups.map(
        (group) =>
          html`<section id="${group.id}" class="group">
            <h2>${group.name}</h2>
            <p>${phrase(group.description)}</p>
            ${group.operations.map((placed) => operationSection(document, placed))}
          </section>`,
      )}
      ${movingSection(document, operations)} ${errorsSection(document)}
      <section id="schemas">
        <h2>Schemas</h2>
        ${schemaSections(document)}
      </section>
      <footer>
        <p>This page is generated from ${contractLink}, the machine-readable contract.</p>
      </footer>
    </main>`;
  return renderPage(info.title, head, body);
}

/** The headers that a request needs. */
function credentialsTable({ components }: ContractDocument): Html {
  const schemes = Object.values(components.securitySchemes);
  return table(
    'Headers of every request',
    ['Request header', 'Meaning'],
    schemes.map(({ name, description }) => [html`<code>${name}</code>`, description]),
  );
}

/** Every problem, under the anchor that its `type` links to. */
function errorsSection({ components }: ContractDocument): Html {
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
