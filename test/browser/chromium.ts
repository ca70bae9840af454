import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';

const require = createRequire(import.meta.url);

/** What the package of Chromium offers of use here. */
interface Packaged {
  readonly default: { executablePath(): Promise<string> };
}

const IMAGES = join(import.meta.dirname, '../../docs/images');
const MAX_IMAGE_BYTES = 130_000;

let browser: Browser;

/** Chromium for the tests of a file. */
export function useChromium(): void {
  beforeAll(async () => {
    // Has the package bring the libraries that a small Debian lacks.
    process.env['AWS_LAMBDA_JS_RUNTIME'] ??= 'nodejs22.x';
    const { default: packaged } = (await import(
      pathToFileURL(require.resolve('@sparticuz/chromium')).href
    )) as Packaged;
    browser = await chromium.launch({
      executablePath: await packaged.executablePath(),
      // Containers give it neither namespaces nor much shared memory.
      args: ['--headless=shell', '--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
    });
  });
  afterAll(() => browser?.close());
}

export interface OpenedPage {
  readonly page: Page;
  /** What it asked for beside its own listener, and what the browser complained about. */
  readonly complaints: string[];
}

/** Opens `url` in a context of its own, which ends with the test. */
export async function openPage(url: string, options: BrowserContextOptions = {}): Promise<OpenedPage> {
  const context = await browser.newContext({ viewport: { width: 760, height: 660 }, ...options });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const complaints: string[] = [];
  const { origin } = new URL(url);
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith('data:'))
      complaints.push(request.url());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/Failed to load resource|favicon/.test(message.text())) {
      complaints.push(message.text());
    }
  });
  await page.goto(url);
  return { page, complaints };
}

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
  }[];
}

/** What axe finds against WCAG 2.2 AA and its own best practices, in both colour schemes. */
export async function expectAccessible(page: Page): Promise<void> {
  const { source } = require('axe-core') as { source: string };
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    // By the debugger, so that the page's policy stays as strict as it is.
    await page.evaluate(source);
    const { violations } = (await page.evaluate('axe.run()')) as AxeResult;
    const found = violations.map(({ id, nodes }) => [
      id,
      nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`),
    ]);
    expect([colorScheme, ...found]).toEqual([colorScheme]);
  }
  await page.emulateMedia({ colorScheme: 'light' });
}

/** A picture of the page for the docs; kept where SCREENSHOTS=write asks for it. */
export async function picture(page: Page, name: string, fullPage = false): Promise<void> {
  const bytes = await page.screenshot({ fullPage, animations: 'disabled' });
  expect(bytes.length).toBeLessThan(MAX_IMAGE_BYTES);
  if (process.env['SCREENSHOTS'] !== 'write') return;
  await mkdir(IMAGES, { recursive: true });
  await writeFile(join(IMAGES, `status-${name}.png`), bytes);
}
