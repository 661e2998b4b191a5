import {
  resolveReference,
  type ContractDocument,
  type MediaType,
  type PlacedOperation,
  type Response,
  type Schema,
} from '../../contract/document.ts';
import { html, type Content, type Html } from '../../lib/html.ts';
import { breakable, codeBlock, methodLabel, phrase, prose, statusLabel, table } from './html.ts';
import { fieldsOf, typeOf } from './schemas.ts';

/** One operation: what it does, its requests and responses, with examples. */
export function operationSection(document: ContractDocument, placed: PlacedOperation): Html {
  const { path, method, operation } = placed;
  const { operationId, summary, description = '' } = operation;
  const bodies = Object.entries(operation.requestBody?.content ?? {});
  const responses = Object.entries(operation.responses).map(
    ([status, reference]) => [status, resolveReference(document, reference)] as const,
  );
  return html`<section id="${operationId}" class="operation">
    <div>
      <h3><a class="self" href="#${operationId}">${summary}</a></h3>
      <p class="address">
        ${methodLabel(method)} <code>${breakable(path)}</code>
        ${operation.deprecated === true && html`<a class="chip" href="#deprecation">deprecated</a>`}
      </p>
      ${prose(description)}
      ${bodies.map(
        ([type, { schema }]) =>
          html`<h4>Body, <code>${type}</code></h4>
            ${bodyOf(document, schema, `Fields of the ${type} body`)}`,
      )}
      <h4>Responses</h4>
      ${table(
        `Responses of ${operationId}`,
        ['Status', 'Meaning'],
        responses.map(([status, response]) => [
          statusLabel(status),
          [phrase(response.description), ' ', contentOf(response)],
        ]),
      )}
    </div>
    <div class="examples">
      ${bodies.length === 0 && codeBlock('Request', curl(document, placed))}
      ${bodies.map(([type, media]) => codeBlock(`Request, ${type}`, curl(document, placed, type, media)))}
      ${responses.map(([status, response]) => examplesOf(status, response))}
    </div>
  </section>`;
}

function bodyOf(document: ContractDocument, schema: Schema, caption: string): Html {
  const target = resolveReference<Schema>(document, schema);
  return target.properties
    ? fieldsOf(target, caption)
    : html`<p><span class="type">${typeOf(schema)}</span> ${phrase(target.description ?? '')}</p>`;
}

/** The body of a response: a schema, or the codes of its problem. */
function contentOf({ content = {} }: Response): Content {
  return Object.entries(content).map(([type, { schema }]) => {
    if (type !== 'application/problem+json') {
      return html`<span class="type">${schema.$ref === undefined ? type : typeOf(schema)}</span>`;
    }
    const codes = (schema.allOf ?? []).flatMap(({ properties }) => properties?.['code'] ?? []);
    return html`<span class="codes"
      >${codes
        .flatMap((code) => code.enum ?? [code.const])
        .map((code) => html`<a href="#problem-${String(code)}">${String(code)}</a> `)}</span
    >`;
  });
}

/** The examples of a successful response. Problems are all alike, and each is described once, under Errors. */
function examplesOf(status: string, { content = {} }: Response): Content {
  if (!status.startsWith('2')) return undefined;
  const examples = Object.values(content).flatMap((media) => Object.values(media.examples ?? {}));
  return examples.map(({ summary, value }) =>
    codeBlock(
      `Response ${status}${summary === undefined ? '' : `: ${summary}`}`,
      JSON.stringify(value, null, 2),
    ),
  );
}

/** The request as a command for a POSIX shell. */
function curl(document: ContractDocument, placed: PlacedOperation, type?: string, media?: MediaType): string {
  const { path, method, operation } = placed;
  const { apiKey, organization } = document.components.securitySchemes;
  const address = path.replace(/\{(\w+)\}/, (_, name: string) => `$${name.toUpperCase()}`);
  const lines = [`curl ${method === 'get' ? '' : `-X ${method.toUpperCase()} `}"$BASE_URL${address}"`];
  if (operation.security?.length !== 0) {
    lines.push(`-H "${apiKey.name}: $API_KEY"`, `-H "${organization.name}: $ORGANIZATION_ID"`);
  }
  if (type === 'multipart/form-data') lines.push('-F "profilePicture=@picture.png"');
  else if (type !== undefined) {
    const [example] = Object.values(media?.examples ?? {});
    const text = JSON.stringify(example?.value).replaceAll("'", `'\\''`);
    lines.push(`-H "content-type: ${type}"`, `-d '${text}'`);
  }
  return lines.join(' \\\n  ');
}
