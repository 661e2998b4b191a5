import { html, joined, type Content, type Html } from '../../lib/html.ts';

/** Renders the subset of Markdown that descriptions use: paragraphs, `code` and **strong**. */
export function prose(text: string): Html {
  const paragraphs = text.trim().split(/\n\s*\n/);
  return html`${paragraphs.map((paragraph) => html`<p>${phrase(paragraph)}</p>`)}`;
}

/** Renders one paragraph of that Markdown. */
export function phrase(text: string): Html {
  const parts = text.split(/(`[^`]+`|\*\*[^*]+\*\*)/);
  return html`${parts.map((part) => {
    if (/^`.+`$/s.test(part)) return html`<code>${part.slice(1, -1)}</code>`;
    if (/^\*\*.+\*\*$/s.test(part)) return html`<strong>${part.slice(2, -2)}</strong>`;
    return part;
  })}`;
}

/** A name that may wrap between its words. */
export function breakable(name: string): Html {
  return joined(name.split(/(?<=[a-z])(?=[A-Z])|(?<=[/.])/), html`<wbr />`);
}

export function methodLabel(method: string): Html {
  return html`<span class="method ${method}">${method.toUpperCase()}</span>`;
}

export function statusLabel(status: string | number): Html {
  return html`<span class="status s${String(status)[0]}">${status}</span>`;
}

/** A block of code that can be scrolled by keyboard. */
export function codeBlock(label: string, code: Content): Html {
  return html`<figure class="code">
    <figcaption>${label}</figcaption>
    <pre tabindex="0" role="group" aria-label="${label}"><code>${code}</code></pre>
  </figure>`;
}

/** A table of two columns; the caption is for screen readers. */
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
