import { readFileSync } from 'node:fs';

/** The style sheet that all pages share; a page's own rules come after it. */
export const baseStyle = readFileSync(new URL('base.css', import.meta.url), 'utf8');

/** Escaped markup, created only by `html`. */
export interface Html {
  readonly markup: string;
}

export type Content = string | number | Html | undefined | readonly Content[];

const escapes: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function render(content: Content): string {
  if (typeof content !== 'object') {
    return String(content ?? '').replace(/[&<>"']/g, (character) => escapes[character] ?? '');
  }
  return 'markup' in content ? content.markup : content.map(render).join('');
}

/** A template that escapes interpolated values, in text and in quoted attributes; undefined is left out. */
export function html(strings: TemplateStringsArray, ...contents: Content[]): Html {
  return { markup: String.raw({ raw: strings }, ...contents.map(render)) };
}

/** A link, or only the text if the address is neither an http(s) URL nor on this site. */
export function link(address: string, text: Content = address): Html {
  return /^(https?:\/\/|[/#])/.test(address) ? html`<a href="${address}">${text}</a>` : html`${text}`;
}
