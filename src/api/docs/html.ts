import { html, type Content, type Html } from '../../lib/html.ts';

/** The little Markdown descriptions are written in: paragraphs, `code` and **strong**. */
export function prose(text: string): Html {
  return html`${text
    .trim()
    .split(/\n\s*\n/)
    .map((paragraph) => html`<p>${phrase(paragraph)}</p>`)}`;
}

/** One paragraph's worth of that Markdown. */
export function phrase(text: string): Html {
  const parts = text.split(/(`[^`]+`|\*\*[^*]+\*\*)/);
  return html`${parts.map((part) => {
    if (/^`.+`$/s.test(part)) return html`<code>${part.slice(1, -1)}</code>`;
    if (/^\*\*.+\*\*$/s.test(part)) return html`<strong>${part.slice(2, -2)}</strong>`;
    return part;
  })}`;
}

/** A name that may break where its words do. */
export function breakable(name: string): Html {
  return html`${name.split(/(?<=[a-z])(?=[A-Z])|(?<=[/.])/).map((part, i) => (i === 0 ? part : html`<wbr />${part}`))}`;
}

/** A block of code that can be scrolled by keyboard. */
export function codeBlock(label: string, code: Content): Html {
  return html`<figure class="code">
    <figcaption>${label}</figcaption>
    <pre tabindex="0" role="group" aria-label="${label}"><code>${code}</code></pre>
  </figure>`;
}

/** A JSON value, indented, its names and literals marked for colour. */
export function jsonCode(value: unknown): Html {
  const parts = JSON.stringify(value, null, 2).split(/("(?:[^"\\]|\\.)*")/);
  return html`${parts.map((part, index) => {
    if (!part.startsWith('"')) return part;
    const kind = parts[index + 1]?.startsWith(':') === true ? 'name' : 'string';
    return html`<span class="${kind}">${part}</span>`;
  })}`;
}
