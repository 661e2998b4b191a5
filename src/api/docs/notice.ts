import type { DeprecationPolicy } from '../../deprecation/policy/policy.ts';
import { html, link, type Content, type Html } from '../../lib/html.ts';

/** The notice at the top of the page: since when the API is deprecated, until when it works, and its successor. */
export function deprecationSection(policy: DeprecationPolicy, baseUrl: string): Html {
  const { deprecatedAt, sunsetAt, successorUrl, documentationUrl } = policy;
  const absolute = (url: string): string => (url.startsWith('/') ? baseUrl + url : url);
  const brownouts = policy.brownouts
    .filter(({ end }) => end > Date.now())
    .toSorted((a, b) => a.start - b.start)
    .map(({ start, end }) => html`<span class="window">${minuteFormat.formatRange(start, end)} UTC</span>`);
  const facts: [string, Content][] = [];
  if (deprecatedAt !== undefined) facts.push(['Deprecated since', day(deprecatedAt)]);
  if (sunsetAt !== undefined) facts.push(['Sunset', day(sunsetAt)]);
  if (brownouts.length > 0) facts.push(['Brownouts', brownouts]);
  if (successorUrl !== undefined) facts.push(['Successor', link(absolute(successorUrl))]);
  if (documentationUrl !== undefined && !documentationUrl.endsWith('#deprecation')) {
    facts.push(['Read more', link(absolute(documentationUrl))]);
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

function day(ms: number): Content {
  return html`<time datetime="${new Date(ms).toISOString()}">${dayFormat.format(ms)}</time>`;
}
