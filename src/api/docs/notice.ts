import type { DeprecationFacts } from '../../contract/document.ts';
import { html, link, type Content, type Html } from '../../lib/html.ts';

/** The facts in force. Times are ISO 8601. */
export interface FactsInForce extends Partial<DeprecationFacts> {
  /** Those that are not over. */
  brownouts?: readonly { start: string; end: string }[];
}

/** The notice at the top of the page: since when the API is deprecated, until when it works, and its successor. */
export function deprecationSection({
  deprecatedAt,
  sunsetAt,
  successor,
  documentation,
  brownouts = [],
}: FactsInForce): Html {
  const facts: [string, Content][] = [];
  if (deprecatedAt !== undefined) facts.push(['Deprecated since', day(deprecatedAt)]);
  if (sunsetAt !== undefined) facts.push(['Sunset', day(sunsetAt)]);
  if (brownouts.length > 0) {
    facts.push([
      'Brownouts',
      brownouts.map(
        ({ start, end }) =>
          html`<span class="window">${minuteFormat.formatRange(new Date(start), new Date(end))} UTC</span>`,
      ),
    ]);
  }
  if (successor !== undefined) facts.push(['Successor', link(successor)]);
  if (documentation !== undefined && !documentation.endsWith('#deprecation')) {
    facts.push(['Read more', link(documentation)]);
  }
  return html`<section id="deprecation" class="notice" aria-labelledby="deprecation-title">
    <h2 id="deprecation-title">This API is deprecated</h2>
    <dl>
      ${facts.map(
        ([name, value]) =>
          html`<div>
            <dt>${name}</dt>
            <dd>${value}</dd>
          </div>`,
      )}
    </dl>
    <p>
      It works unchanged until the sunset. After it, and during announced brownouts, it may respond with
      <a href="#problem-sunset">410</a>. Every response has these dates and links in its headers
      <code>Deprecation</code>, <code>Sunset</code> and <code>Link</code>.
      <a href="#moving">Moving away</a> explains what they mean, how to log them, and what replaces each
      operation.
    </p>
  </section>`;
}

const dayFormat = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' });
const minuteFormat = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'long',
  timeStyle: 'short',
  timeZone: 'UTC',
});

function day(iso: string): Content {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  return html`<time datetime="${date.toISOString()}">${dayFormat.format(date)}</time>`;
}
