import {
  resolve,
  type ContractDocument,
  type MediaType,
  type Method,
  type Operation,
  type Response,
  type Schema,
} from '../../contract/document.ts';
import { html, type Content, type Html } from '../../lib/html.ts';
import { breakable, codeBlock, jsonCode, phrase, prose, table } from './html.ts';
import { fieldsOf, typeOf } from './schemas.ts';

export interface Placed {
  path: string;
  method: Method;
  operation: Operation;
}

/** One operation: what it does, its requests and responses, with examples. */
export function operationSection(document: ContractDocument, placed: Placed): Html {
  const { path, method, operation } = placed;
  const bodies = Object.entries(operation.requestBody?.content ?? {});
  return html`<section id="${operation.operationId}" class="operation">
    <div>
      <h3><a class="self" href="#${operation.operationId}">${operation.summary}</a></h3>
      <p class="address">
        <span class="method ${method}">${method.toUpperCase()}</span>
        <code>${breakable(path)}</code>
        ${operation.deprecated === true ? html`<a class="chip" href="#deprecation">deprecated</a>` : undefined}
      </p>
      ${prose(operation.description ?? '')}
      ${bodies.map(
        ([type, media]) =>
          html`<h4>Body, <code>${type}</code></h4>
            ${bodyOf(document, media.schema, `Fields of the ${type} body`)}`,
      )}
      <h4>Responses</h4>
      ${responsesTable(document, operation)}
    </div>
    <div class="examples">
      ${
        bodies.length === 0
          ? codeBlock('Request', curl(document, placed))
          : bodies.map(([type, media]) => codeBlock(`Request, ${type}`, curl(document, placed, type, media)))
      }
      ${Object.entries(operation.responses).map(([status, response]) =>
        responseExamples(status, resolve(document, response)),
      )}
    </div>
  </section>`;
}

function bodyOf(document: ContractDocument, schema: Schema, caption: string): Html {
  const target = resolve<Schema>(document, schema);
  return target.properties
    ? fieldsOf(target, caption)
    : html`<p><span class="type">${typeOf(schema)}</span> ${phrase(target.description ?? '')}</p>`;
}

function responsesTable(document: ContractDocument, operation: Operation): Html {
  const rows = Object.entries(operation.responses).map(([status, reference]): [Content, Content] => {
    const response = resolve(document, reference);
    return [
      html`<span class="status s${status[0]}">${status}</span>`,
      [phrase(response.description), ' ', contentOf(response)],
    ];
  });
  return table(`Responses of ${operation.operationId}`, ['Status', 'Meaning'], rows, 'answers');
}

/** The body of a response: a schema, or the codes of its problem. */
function contentOf({ content = {} }: Response): Content {
  return Object.entries(content).map(([type, { schema }]) => {
    if (type !== 'application/problem+json') {
      return html`<span class="type">${schema.$ref === undefined ? type : typeOf(schema)}</span>`;
    }
    return html`<span class="codes"
      >${codesOf(schema).map((code) => html`<a href="#problem-${code}">${code}</a> `)}</span
    >`;
  });
}

function codesOf(schema: Schema): string[] {
  return (schema.allOf ?? []).flatMap(({ properties }) => {
    const code = properties?.['code'];
    return code === undefined ? [] : (code.enum ?? [code.const]).map(String);
  });
}

function responseExamples(status: string, { content = {} }: Response): Content {
  // Problems are all alike; each is described once, under Errors.
  if (!status.startsWith('2')) return undefined;
  return Object.values(content).map(({ examples = {} }) =>
    Object.values(examples).map(({ summary, value }) =>
      codeBlock(
        summary === undefined ? `Response ${status}` : `Response ${status}: ${summary}`,
        jsonCode(value),
      ),
    ),
  );
}

/** The request as a command for a POSIX shell. */
function curl(document: ContractDocument, placed: Placed, type?: string, media?: MediaType): string {
  const { path, method, operation } = placed;
  const credentials = operation.security?.length === 0 ? [] : credentialHeaders(document);
  const file = operation.parameters?.[0]?.name;
  const address = file === undefined ? path : path.replace(`{${file}}`, `$${file.toUpperCase()}`);
  const example = Object.values(media?.examples ?? {})[0];
  const lines = [
    `curl ${method === 'get' ? '' : `-X ${method.toUpperCase()} `}"$BASE_URL${address}"`,
    ...credentials.map((header) => `-H "${header}"`),
  ];
  if (type === 'multipart/form-data') lines.push('-F "profilePicture=@picture.png"');
  else if (type !== undefined) {
    lines.push(
      `-H "content-type: ${type}"`,
      `-d '${JSON.stringify(example?.value).replaceAll("'", `'\\''`)}'`,
    );
  }
  return lines.join(' \\\n  ');
}

/** The credentials as header lines, with shell variables as their values. */
export function credentialHeaders({ components }: ContractDocument): string[] {
  const { apiKey, organization } = components.securitySchemes;
  return [`${apiKey?.name ?? ''}: $API_KEY`, `${organization?.name ?? ''}: $ORGANIZATION_ID`];
}
