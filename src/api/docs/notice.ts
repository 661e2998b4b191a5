import type { DeprecationFacts } from '../../contract/document.ts';
import { html, link, type Content, type Html } from '../../lib/html.ts';

/** What holds now. Times are ISO 8601. */
export interface FactsInForce extends Partial<DeprecationFacts> {
  /** Those that are not over. */
  brownouts?: readonly { start: string; end: string }[];
}

/** What everybody should know first: since when, until when, and where to go. */
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
    <h2 id="deprecation-title">This interface is deprecated</h2>
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
      It works as ever until the sunset; after it, and during announced brownouts before it, it may answer
      <a href="#problem-sunset">410</a>. Every answer of the interface carries these dates and addresses in
      its headers <code>Deprecation</code>, <code>Sunset</code> and <code>Link</code>.
      <a href="#moving">Moving away</a> has what they mean, how to log them, and what replaces each operation.
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
