import type { Level, StatusReport } from '../report.ts';
import { Html, html } from './html.ts';
import {
  credentialsSection,
  forwardProxySection,
  LINKS,
  programSection,
  routesSection,
  verdictSection,
} from './sections.ts';
import { STYLE } from './style.ts';
import { absolute } from './times.ts';

/** For the title, which has no colour. */
const SIGNS: Readonly<Record<Level, string>> = { failing: '✖', warning: '▲', ok: '✔' };

const ICON_COLOURS: Readonly<Record<Level | 'stale', string>> = {
  ok: '1a7f37',
  warning: 'd4a72c',
  failing: 'cf222e',
  stale: '6e7681',
};

interface PageOptions {
  /** The text of the script, which is part of the page. */
  readonly script: string;
  /** Whether the reader may change something. */
  readonly mayChange: boolean;
}

/** The whole page: it holds everything it shows, and the script only fetches newer versions. */
export function statusDocument(status: StatusReport, { script, mayChange }: PageOptions): string {
  const { verdict, pod, at } = status;
  const place = [pod.name, pod.namespace, pod.node].filter((part) => part !== undefined);
  const page = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${SIGNS[verdict.level]} ${place.join(' · ')} – token-sidecar</title>
<link id="icon" rel="icon" href="${icon(verdict.level)}" data-stale="${icon('stale')}">
<style>${new Html(STYLE)}</style></head>
<body><p id="stale" role="alert" hidden></p><p id="told" role="status" hidden></p><p id="announced" class="out" role="status"></p>
<header><h1>token-sidecar <small>${place.join(' · ')}</small></h1></header>
<main id="main" data-level="${verdict.level}">${verdictSection(status)}
<p class="dim">As of <time id="as-of" datetime="${at}">${absolute(at)}</time><span id="paused" hidden>, held while text is selected</span>.<noscript> This is a snapshot: load the page again for a newer one.</noscript></p>
${credentialsSection(status, mayChange)}${routesSection(status)}${forwardProxySection(status)}${programSection(status, mayChange)}</main>
<footer>${LINKS}</footer>
<script type="module">${new Html(script)}</script></body></html>
`;
  return page.text;
}

function icon(level: Level | 'stale'): string {
  return `data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Ccircle cx='8' cy='8' r='7' fill='%23${ICON_COLOURS[level]}'/%3E%3C/svg%3E`;
}
