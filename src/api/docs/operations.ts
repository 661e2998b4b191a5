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
import { breakable, codeBlock, jsonCode, phrase, prose } from './html.ts';
import { fieldsOf, typeOf } from './schemas.ts';

export interface Placed {
  path: string;
  method: Method;
  operation: Operation;
}

/** One operation: what it does, what it takes and answers, and how that looks. */
export function operationSection(document: ContractDocument, placed: Placed): Html {
  const { path, method, operation } = placed;
  const bodies = Object.entries(operation.requestBody?.content ?? {});
  return html`<section id="${operation.operationId}" class="operation">
    <div class="told">
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
      <h4>Answers</h4>
      ${answersTable(document, operation)}
    </div>
    <div class="shown">
      ${
        bodies.length === 0
          ? codeBlock('Request', curl(document, placed))
          : bodies.map(([type, media]) => codeBlock(`Request, ${type}`, curl(document, placed, type, media)))
      }
      ${Object.entries(operation.responses).map(([status, response]) =>
        shownAnswer(status, resolve(document, response)),
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

function answersTable(document: ContractDocument, operation: Operation): Html {
  return html`<table class="answers">
    <caption class="unseen">
      Answers of ${operation.operationId}
    </caption>
    <thead>
      <tr>
        <th scope="col">Status</th>
        <th scope="col">Meaning</th>
      </tr>
    </thead>
    <tbody>
      ${Object.entries(operation.responses).map(([status, reference]) => {
        const response = resolve(document, reference);
        return html`<tr>
          <th scope="row"><span class="status s${status[0]}">${status}</span></th>
          <td>${phrase(response.description)} ${contentOf(response)}</td>
        </tr>`;
      })}
    </tbody>
  </table>`;
}

/** What an answer's body is: a schema, or the codes of its problem. */
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

function shownAnswer(status: string, { content = {} }: Response): Content {
  // One problem looks like another: showing each of them once, further down, is enough.
  if (!status.startsWith('2')) return undefined;
  return Object.values(content).map(({ examples = {} }) =>
    Object.values(examples).map(({ summary, value }) =>
      codeBlock(summary === undefined ? `Answer ${status}` : `Answer ${status}: ${summary}`, jsonCode(value)),
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

/** The credentials as header lines with shell variables. */
export function credentialHeaders({ components }: ContractDocument): string[] {
  const { apiKey, organization } = components.securitySchemes;
  return [`${apiKey?.name ?? ''}: $API_KEY`, `${organization?.name ?? ''}: $ORGANIZATION_ID`];
}
