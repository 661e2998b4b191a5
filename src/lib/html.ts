import { readFileSync } from 'node:fs';

const read = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');

/** The style sheet that all pages share; a page's own rules come after it. */
export const baseStyle = read('base.css');

/** The icon that all pages share, as SVG. */
export const iconSvg = read('icon.svg').trim();

/** Escaped markup, created only by `html`. */
export interface Html {
  readonly markup: string;
}

export type Content = string | number | Html | false | undefined | readonly Content[];

const escapes: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function render(content: Content): string {
  if (typeof content !== 'object') {
    return String(content === false ? '' : (content ?? '')).replace(
      /[&<>"']/g,
      (character) => escapes[character] ?? '',
    );
  }
  return 'markup' in content ? content.markup : content.map(render).join('');
}

/** A template tag that escapes values, for text and quoted attributes; false and undefined are left out. */
export function html(strings: TemplateStringsArray, ...contents: Content[]): Html {
  return { markup: String.raw({ raw: strings }, ...contents.map(render)) };
}

/** The contents with a separator between each two. */
export function joined(contents: readonly Content[], separator: Content): Html {
  return html`${contents.map((content, i) => [i > 0 && separator, content])}`;
}

/** A link, or only the text if the address is neither an http(s) URL nor on this site. */
export function link(address: string, text: Content = address): Html {
  return /^(https?:\/\/|[/#])/.test(address) ? html`<a href="${address}">${text}</a>` : html`${text}`;
}

/** Comes first in a page, for those who use the keyboard: leads past what comes before `#content`. */
export const skipLink: Html = html`<a class="skip" href="#content">Skip to the content</a>`;

/** A whole page. `head` has the elements that load its style and scripts, and its icon. */
export function renderPage(title: string, head: Content, body: Content): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title}</title>
        ${head}
      </head>
      <body>
        ${body}
      </body>
    </html> `.markup;
}
