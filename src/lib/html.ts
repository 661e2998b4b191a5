import { readFileSync } from 'node:fs';

/** The style that all pages share; a page's own goes behind it. */
export const baseStyle = readFileSync(new URL('base.css', import.meta.url), 'utf8');

/** Markup that is safe as it stands. Only `html` makes it. */
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
  if (content === undefined) return '';
  if (typeof content === 'string')
    return content.replace(/[&<>"']/g, (character) => escapes[character] ?? '');
  if (typeof content === 'number') return String(content);
  return 'markup' in content ? content.markup : content.map(render).join('');
}

/** A template whose interpolations are escaped, for text and quoted attributes alike; undefined is nothing. */
export function html(strings: TemplateStringsArray, ...contents: Content[]): Html {
  return { markup: String.raw({ raw: strings }, ...contents.map(render)) };
}

/** A link, or plain text where the address is neither http(s) nor on this site. */
export function link(address: string, text: Content = address): Html {
  return /^(https?:\/\/|[/#])/.test(address) ? html`<a href="${address}">${text}</a>` : html`${text}`;
}
