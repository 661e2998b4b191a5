import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import {
  contractDocument,
  resolveReference,
  type Header,
  type Method,
  type PathItem,
  type Response,
  type Schema,
} from '../../../src/contract/document.ts';
import { problemKinds, problemType, type ProblemBody } from '../../../src/contract/problems.ts';

export interface Answer {
  status: number;
  /** By lower-case name; a header sent twice is joined by ", ". */
  headers: Record<string, string>;
  /** The parsed JSON, or undefined for any other type. */
  body: unknown;
  text: string;
  bytes: Buffer;
}

/** Headers of HTTP itself, and those that only protect browsers: no part of the contract. */
const GENERIC_HEADERS = new Set([
  'connection',
  'content-length',
  'content-security-policy',
  'content-type',
  'cross-origin-opener-policy',
  'cross-origin-resource-policy',
  'date',
  'keep-alive',
  'origin-agent-cluster',
  'referrer-policy',
  'strict-transport-security',
  'transfer-encoding',
  'vary',
  'x-content-type-options',
  'x-dns-prefetch-control',
  'x-download-options',
  'x-frame-options',
  'x-permitted-cross-domain-policies',
  'x-xss-protection',
]);

const ajv = new Ajv2020({
  allErrors: true,
  strictTypes: false,
  strictRequired: false,
  validateSchema: false,
});
formats.default(ajv);
ajv.addVocabulary(Object.keys(contractDocument()));
ajv.addSchema(contractDocument(), 'contract');

const compiled = new Map<Schema, ValidateFunction>();

function validatorOf(schema: Schema): ValidateFunction {
  let validate = compiled.get(schema);
  if (validate === undefined) {
    const text = JSON.stringify(schema).replaceAll('"#/components/', '"contract#/components/');
    validate = ajv.compile(JSON.parse(text) as Schema);
    compiled.set(schema, validate);
  }
  return validate;
}

/** What is wrong with a value by a schema of openapi.yaml; empty when nothing is. */
export function schemaFaults(schema: Schema, value: unknown): string[] {
  const validate = validatorOf(schema);
  if (validate(value)) return [];
  return (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message ?? error.keyword}`);
}

/** Throws, with everything that is wrong, when openapi.yaml does not document this answer. */
export function assertDocumented(method: string, path: string, answer: Answer): void {
  const faults = answerFaults(method.toUpperCase(), path, answer);
  if (faults.length === 0) return;
  const excerpt = answer.text.slice(0, 500);
  throw new Error(
    `${method} ${path} gave an answer openapi.yaml does not document:\n- ${faults.join('\n- ')}\n` +
      `status ${answer.status}, headers ${JSON.stringify(answer.headers)}\n${excerpt}`,
  );
}

function answerFaults(method: string, path: string, answer: Answer): string[] {
  if (answer.status === 500) return ['a 500 is a mistake in the service, documented or not'];
  const found = documentedResponse(method, path.split('?')[0] ?? '', answer.status);
  if (typeof found === 'string') return [found];
  return [...headerFaults(found, answer), ...bodyFaults(method, found, answer), ...problemFaults(answer)];
}

function pathItem(path: string): PathItem | undefined {
  for (const [template, item] of Object.entries(contractDocument().paths)) {
    const [head = '', ...rest] = template.replace(/\/$/, '').split(/\{\w+\}/);
    if (rest.length === 0 ? path.replace(/\/$/, '') === head : path.startsWith(head)) return item;
  }
  return undefined;
}

function documentedResponse(method: string, path: string, status: number): Response | string {
  const item = pathItem(path);
  const { responses } = contractDocument().components;
  if (item === undefined) {
    return (status === 404 && responses.NotFound) || `an unknown path answers 404, not ${status}`;
  }
  const refusal = item['x-method-not-allowed'];
  const operation = item[method.toLowerCase() as Method] ?? (method === 'HEAD' ? item.get : undefined);
  if (operation !== undefined) {
    const response = operation.responses[String(status)];
    return response === undefined
      ? `${operation.operationId} has no status ${status}`
      : resolveReference(contractDocument(), response);
  }
  if (refusal === undefined) return 'the path documents no answer to other methods';
  return status === 405 ? resolveReference(contractDocument(), refusal) : `status ${status}, not 405`;
}

function headerFaults(response: Response, { headers }: Answer): string[] {
  const documented = new Map<string, Header>();
  for (const [name, header] of Object.entries(response.headers ?? {})) {
    documented.set(name.toLowerCase(), resolveReference(contractDocument(), header));
  }
  const faults: string[] = [];
  for (const [name, { required, schema }] of documented) {
    const value = headers[name];
    if (value !== undefined) {
      const typed = schema.type === 'integer' && /^\d+$/.test(value) ? Number(value) : value;
      faults.push(...schemaFaults(schema, typed).map((fault) => `header ${name}: ${value}${fault}`));
    } else if (required === true) {
      faults.push(`header ${name} is missing`);
    }
  }
  for (const name of Object.keys(headers)) {
    if (!documented.has(name) && !GENERIC_HEADERS.has(name)) faults.push(`header ${name} is not documented`);
  }
  const { deprecation, sunset } = headers;
  if (deprecation && sunset && Number(deprecation.slice(1)) * 1000 > Date.parse(sunset)) {
    faults.push('the sunset is earlier than the deprecation');
  }
  return faults;
}

function bodyFaults(method: string, response: Response, answer: Answer): string[] {
  const type = answer.headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  const { content } = response;
  if (content === undefined) {
    if (answer.bytes.length > 0) return ['there is a body where none is documented'];
    return type === undefined ? [] : [`content type ${type} of no content`];
  }
  const media = content[type ?? ''] ?? content[`${type?.split('/')[0]}/*`];
  if (media === undefined)
    return [`content type ${type ?? 'absent'}, not ${Object.keys(content).join(' or ')}`];
  if (method === 'HEAD') return answer.bytes.length > 0 ? ['HEAD was answered with a body'] : [];
  const value = type?.endsWith('json') === true ? answer.body : answer.text;
  return schemaFaults(media.schema, value).map((fault) => `body${fault}`);
}

/** What a schema cannot say: the problem must agree with its answer and with the catalogue. */
function problemFaults({ status, headers, body }: Answer): string[] {
  if (!headers['content-type']?.startsWith('application/problem+json') || body === undefined) return [];
  const problem = body as ProblemBody;
  // An unknown code breaks the schema, which says so.
  if (!(problem.code in problemKinds())) return [];
  const kind = problemKinds()[problem.code];
  const faults: string[] = [];
  const expect = (holds: boolean, fault: string): void => {
    if (!holds) faults.push(fault);
  };
  expect(problem.status === status, `the problem says ${problem.status}, the status line ${status}`);
  expect(problem.title === kind.title, `title of ${problem.code}: ${problem.title}`);
  expect(problem.type === problemType(problem.code), `type of ${problem.code}: ${problem.type}`);
  expect(problem.requestId === (headers['x-request-id'] ?? problem.requestId), 'two request ids');
  expect((problem.code === 'invalid-body') === (problem.errors !== undefined), 'errors go with invalid-body');
  if (status === 410) {
    const wanted = problem.code === 'brownout';
    expect(wanted === (headers['retry-after'] !== undefined), 'Retry-After goes with a brownout');
  }
  return faults;
}
