import type { ContractDocument, Schema } from '../../contract/document.ts';
import { html, joined, type Content, type Html } from '../../lib/html.ts';
import { breakable, phrase, table } from './html.ts';

/** The name of the schema a reference points to. */
function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

/** A schema's type in words, other schemas as links to their descriptions. */
export function typeOf(schema: Schema): Html {
  const { $ref, anyOf, allOf, enum: values, items, additionalProperties: rest } = schema;
  if ($ref !== undefined) return html`<a href="#schema-${nameOf($ref)}">${nameOf($ref)}</a>`;
  if (anyOf) return joined(anyOf.map(typeOf), ' or ');
  if (allOf?.[0]) return typeOf(allOf[0]);
  if (schema.not) return html`never`;
  if (values) {
    const codes = values.map((value) => html`<code>${String(value)}</code>`);
    return joined(codes, ' or ');
  }
  if (items) return html`array of ${typeOf(items)}`;
  if (typeof rest === 'object') return html`object of ${typeOf(rest)}`;
  if (schema.contentMediaType !== undefined) return html`file`;
  return html`${schema.type ?? 'any'}${limitsOf(schema)}`;
}

function limitsOf({ minLength, maxLength }: Schema): string {
  return maxLength === undefined ? '' : `, ${minLength ?? 0} to ${maxLength} code points`;
}

/** A row per field; nested fields are listed below their parent, by dotted names. */
function rowsOf({ properties = {}, required }: Schema, prefix = ''): [Content, Content][] {
  return Object.entries(properties).flatMap(([name, field]) => [
    [
      [
        html`<code>${breakable(prefix + name)}</code>`,
        required?.includes(name) && html` <span class="required">required</span>`,
      ],
      html`<span class="type">${typeOf(field)}</span> ${phrase(field.description ?? '')}`,
    ],
    ...rowsOf(field, `${prefix}${name}.`),
  ]);
}

/** A schema's fields as a table, or its type in one line if it has none. */
export function fieldsOf(schema: Schema, caption: string): Html {
  const rows = rowsOf(schema);
  if (rows.length === 0) return html`<p class="type">${typeOf(schema)}</p>`;
  return table(caption, ['Field', 'Meaning'], rows);
}

/** Every schema of the document, each under the anchor `schema-<name>`. */
export function schemaSections({ components }: ContractDocument): Html {
  return html`${Object.entries(components.schemas).map(
    ([name, schema]) =>
      html`<section id="schema-${name}" class="entry">
        <h3><a class="self" href="#schema-${name}">${name}</a></h3>
        ${schema.description !== undefined && html`<p>${phrase(schema.description)}</p>`}
        ${fieldsOf(schema, `Fields of ${name}`)}
      </section>`,
  )}`;
}
