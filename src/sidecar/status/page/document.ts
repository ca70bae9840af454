import type { Level, StatusReport } from '../report.ts';
import { absolute, Html, html } from './html.ts';
import {
  credentialsSection,
  forwardProxySection,
  LINKS,
  programSection,
  routesSection,
  verdictSection,
} from './sections.ts';

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

/** Colours have a contrast of at least 4.5 to 1 on their ground, light and dark (WCAG 2.2, 1.4.3). */
export const STYLE = `
:root{color-scheme:light dark;--bg:light-dark(#fff,#0d1117);--card:light-dark(#f6f8fa,#161b22);--fg:light-dark(#1f2328,#e6edf3);--dim:light-dark(#59636e,#9aa4af);--line:light-dark(#8c959f,#6e7681);--ok:light-dark(#116329,#56d364);--warning:light-dark(#7d4e00,#e3b341);--failing:light-dark(#a40e26,#ff7b72);--link:light-dark(#0550ae,#79c0ff)}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1rem;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.1rem;margin:0}h2{font-size:1.05rem;margin:1.8rem 0 .5rem}h3{font-size:1rem;margin:0 0 .3rem}p{margin:.3rem 0}
a{color:var(--link)}a:focus-visible,button:focus-visible,summary:focus-visible,pre:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.dim,figcaption,dt{color:var(--dim)}small{font-size:.85rem;font-weight:400}
.ok{color:var(--ok)}.warning{color:var(--warning)}.failing{color:var(--failing)}
#verdict{border-left:.5rem solid;padding:.5rem .9rem;background:var(--card);margin:.8rem 0}#verdict p{color:var(--fg)}#verdict .first{font-size:1.25rem;line-height:1.35;font-weight:600}
article{background:var(--card);border-left:.25rem solid;padding:.6rem .9rem;margin:.6rem 0}article>*{color:var(--fg)}article h3 b{font-weight:400}
.ok b{color:var(--ok)}.warning b{color:var(--warning)}.failing b{color:var(--failing)}
dl{display:flex;flex-wrap:wrap;gap:.3rem 1.4rem;margin:.3rem 0}dt{font-size:.8rem}dd{margin:0;font-variant-numeric:tabular-nums}
svg{display:block;height:2rem;width:100%;overflow:visible}.spark{width:9rem;height:1.5rem}
svg.sign{display:inline-block;width:1em;height:1em;vertical-align:-.12em}.sign path{fill:none;stroke:currentColor;stroke-width:2.5}svg path{vector-effect:non-scaling-stroke}.spark path{fill:none;stroke:var(--link);stroke-width:1.5}.spark.failing path{stroke:var(--failing)}
.timeline{border-bottom:1px solid var(--line)}.timeline .ok{fill:var(--ok)}.timeline .failing{fill:var(--failing)}
figure{margin:.4rem 0}figcaption{display:flex;justify-content:space-between;font-size:.8rem}
ul{padding-left:1.2rem;margin:.3rem 0}table{border-collapse:collapse;font-size:.85rem}th,td{text-align:left;padding:.1rem .8rem .1rem 0;vertical-align:top}
pre{overflow:auto;background:var(--card);padding:.6rem;font-size:.8rem;max-height:30rem}summary{cursor:pointer}details{margin:.4rem 0}
form{display:inline-flex;flex-wrap:wrap;gap:.4rem}button{font:inherit;min-height:2rem;padding:.1rem .8rem;border:1px solid var(--line);border-radius:.3rem;background:var(--bg);color:var(--fg);cursor:pointer}button[aria-pressed=true]{border-color:var(--fg);font-weight:700}
#stale,#told{position:sticky;top:0;padding:.5rem .9rem;font-weight:600;z-index:1}#stale{background:var(--failing);color:var(--bg)}#told{background:var(--fg);color:var(--bg)}#stale[hidden],#told[hidden]{display:none}
.stale main{filter:grayscale(1);border:3px dashed var(--failing);padding:0 .5rem}
nav{display:flex;flex-wrap:wrap;gap:.2rem 1rem}.out{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
`.trim();
