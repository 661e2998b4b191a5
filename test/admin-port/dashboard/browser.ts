import { existsSync } from 'node:fs';
import { describe, expect } from '@jest/globals';
import axe from 'axe-core';
import {
  chromium,
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
} from 'playwright-core';

const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const hasBrowser = existsSync(executablePath);

/** `describe`, or where there is no Chromium, the same visibly skipped. */
export const describeInBrowser = hasBrowser ? describe : describe.skip;

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

export interface Watched {
  page: Page;
  context: BrowserContext;
  /** Errors of the page: failed scripts, and what its Content-Security-Policy refused. */
  complaints: string[];
}

/** A page in its own context, whose errors are collected. The caller closes the context. */
export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  return { page, context, complaints };
}

const axeTags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** Fails with what axe finds wrong on the page by WCAG 2.2 A and AA, and by good practice. */
export async function expectAccessible({ page, context }: Watched): Promise<void> {
  // Through the debugger, since the page's own policy lets no foreign script in.
  const debug = await context.newCDPSession(page);
  await debug.send('Runtime.evaluate', { expression: axe.source });
  const { result } = await debug.send('Runtime.evaluate', {
    expression: `axe.run(document, { runOnly: { type: 'tag', values: ${JSON.stringify(axeTags)} } })
      .then(({ violations, passes }) => ({
        passes: passes.length,
        violations: violations.map(({ id, nodes }) => ({ id, at: nodes.map(({ html, failureSummary }) => [html, failureSummary]) })),
      }))`,
    awaitPromise: true,
    returnByValue: true,
  });
  await debug.detach();
  const { violations, passes } = result.value as { violations: unknown[]; passes: number };
  expect(violations).toEqual([]);
  expect(passes).toBeGreaterThan(10);
}
