import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { docsContentSecurityPolicy, renderDocs } from '../../../src/api/docs/page.ts';
import { contractDocument, operationsOf, type ContractDocument } from '../../../src/contract/document.ts';
import { readContractPolicy } from '../../../src/deprecation/policy/contract-policy.ts';
import { layerPolicy, type PolicyLayer } from '../../../src/deprecation/policy/policy.ts';
import { problemKinds, problemType, type ProblemCode } from '../../../src/contract/problems.ts';

const render = (layer: PolicyLayer = {}, document = contractDocument()): string =>
  renderDocs(document, layerPolicy(readContractPolicy(), layer));
const page = render();
const found = (pattern: RegExp, text = page): string[] =>
  [...text.matchAll(pattern)].map(([, group]) => group ?? '');
const ids = found(/\sid="([^"]*)"/g);

/** The contract with `text` in place of every description, summary, title and example text. */
function defaced(text: string): ContractDocument {
  const replaced = new Set(['description', 'summary', 'title', 'version', 'username', 'usernamesNotAdded']);
  return JSON.parse(JSON.stringify(contractDocument()), (key, value: unknown) =>
    replaced.has(key) && typeof value === 'string' ? text : value,
  ) as ContractDocument;
}

describe('the documentation page', () => {
  test('has an anchor for every problem type', () => {
    for (const code of Object.keys(problemKinds()) as ProblemCode[]) {
      expect(ids).toContain(problemType(code).replace('/docs/#', ''));
    }
  });

  test('shows every operation and every schema under an anchor of its own', () => {
    for (const { method, operation } of operationsOf(contractDocument())) {
      if (method !== 'head' && method !== 'options') expect(ids).toContain(operation.operationId);
    }
    for (const name of Object.keys(contractDocument().components.schemas))
      expect(ids).toContain(`schema-${name}`);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('has no broken link', () => {
    const targets = found(/href="#([^"]*)"/g);
    expect(targets.length).toBeGreaterThan(10);
    for (const target of targets) expect(ids).toContain(target);
  });

  test('loads no resource and runs no script', () => {
    expect(page).not.toMatch(/<script|<[^>]*\s(?:on\w+|src|style)=/i);
    expect(found(/<style>([^]*)<\/style>/g).join()).not.toMatch(/@import|url\(/i);
    expect(found(/<link[^>]*href="(\w+:)/g)).toEqual(['data:']);
  });

  test('has a Content-Security-Policy that allows only its own style', () => {
    const [style = ''] = found(/<style>([^]*)<\/style>/g);
    const hash = createHash('sha256').update(style).digest('base64');
    expect(docsContentSecurityPolicy).toContain(`style-src 'sha256-${hash}'`);
    expect(docsContentSecurityPolicy).toContain("default-src 'none'");
  });

  test('escapes whatever text it shows', () => {
    const hostile = `"><script>alert('1')</script>&amp;\`<b>\`**<i>**`;
    const html = render({}, defaced(hostile));
    expect(html).not.toMatch(/<(script|b|i)>/);
    expect(html).toContain('&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;amp;<code>&lt;b&gt;</code>');
    expect(found(/<(\w+)/g, html).length).toBeGreaterThan(500);
  });

  test('shows the policy in force', () => {
    expect(page).toContain('<time datetime="2027-12-31T23:59:59.000Z">31 December 2027</time>');
    const html = render({
      sunsetAt: Date.parse('2028-02-29T00:00:00Z'),
      documentationUrl: 'https://d.example.com/',
      successorUrl: '/successor/',
    });
    expect(html).toContain('29 February 2028');
    expect(html).toContain('<a href="https://d.example.com/">');
    expect(html).not.toContain('kv.example.com/</a>');
  });

  test('lists the brownouts to come', () => {
    const brownouts = [
      { start: Date.parse('2027-03-01T12:00:00Z'), end: Date.parse('2027-03-01T12:30:00Z') },
    ];
    const html = render({ brownouts });
    expect(html).toMatch(/>1 March 2027(,| at) 12:00\s*–\s*12:30 UTC</);
  });

  test('shows for every operation what replaces it', () => {
    const replaced = operationsOf(contractDocument())
      .filter(({ method }) => method !== 'head' && method !== 'options')
      .filter(({ operation }) => operation.deprecated === true);
    expect(replaced).toHaveLength(5);
    for (const { operation } of replaced) {
      expect(operation['x-successor']?.keys.length).toBeGreaterThan(1);
      const row = page.slice(page.lastIndexOf(`href="#${operation.operationId}"`)).split('</tr>')[0];
      for (const key of operation['x-successor']?.keys ?? []) {
        expect(row).toContain(key.replaceAll('<', '&lt;').replaceAll('>', '&gt;'));
      }
    }
  });

  test('links to no address that is not http(s)', () => {
    const html = render({ successorUrl: 'javascript:alert(1)' });
    expect(html).not.toContain('href="javascript:');
  });

  test('quotes commands for the shell', () => {
    expect(page).toContain('-H &quot;x-api-key: $API_KEY&quot;');
    const html = render({}, defaced("O'Neil"));
    expect(html).toContain(`-d &#39;{&quot;username&quot;:&quot;O&#39;\\&#39;&#39;Neil&quot;}&#39;`);
  });
});
