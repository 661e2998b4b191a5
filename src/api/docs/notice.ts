import type { DeprecationPolicy } from '../../deprecation/policy/policy.ts';
import { html, link, type Content, type Html } from '../../lib/html.ts';

/** The notice at the top of the page: since when the API is deprecated, until when it works, and its successor. */
export function deprecationSection(policy: DeprecationPolicy, baseUrl: string): Html {
  const { deprecatedAt, sunsetAt, successorUrl, documentationUrl } = policy;
  const absolute = (url: string): string => (url.startsWith('/') ? baseUrl + url : url);
  const brownouts = policy.brownouts
    .filter(({ end }) => end > Date.now())
    .map(({ start, end }) => html`<span class="window">${minuteFormat.formatRange(start, end)} UTC</span>`);
  const readMore = documentationUrl?.endsWith('#deprecation') ? undefined : documentationUrl;
  const facts: [string, Content][] = [
    ['Deprecated since', deprecatedAt !== undefined && day(deprecatedAt)],
    ['Sunset', sunsetAt !== undefined && day(sunsetAt)],
    ['Brownouts', brownouts.length > 0 && brownouts],
    ['Successor', successorUrl !== undefined && link(absolute(successorUrl))],
    ['Read more', readMore !== undefined && link(absolute(readMore))],
  ];
  return html`<section id="deprecation" class="notice" aria-labelledby="deprecation-title">
    <h2 id="deprecation-title">This API is deprecated</h2>
    <dl>
      ${facts.map(
        ([name, value]) =>
          value !== false &&
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
