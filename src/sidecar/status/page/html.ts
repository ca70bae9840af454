import { distance, instant, span } from '../../../platform/time/words.ts';
import type { MinuteReport } from '../report.ts';

/** Made only by `html`. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Text is escaped, HTML is not, lists are joined, and undefined is empty. */
export type Part = Html | string | number | undefined | readonly Part[];

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(texts.reduce((whole, text, index) => `${whole}${textOf(parts[index - 1])}${text}`));
}

function textOf(part: Part): string {
  if (part === undefined) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(textOf).join('');
  return String(part).replace(/[&<>"']/g, (character) => ESCAPES[character] as string);
}

const MINUTE_MS = 60_000;

/** `2026-11-22 03:04:05 UTC` */
export function absolute(iso: string): string {
  return instant(Date.parse(iso));
}

/** `12 min ago`, `in 45 s`, with the instant as tooltip. */
export function time(iso: string, now: string): Html {
  const text = distance(Date.parse(iso), Date.parse(now));
  return html`<time datetime="${iso}" title="${absolute(iso)}">${text}</time>`;
}

/** `for 12 min` */
export function lasting(since: string, now: string): Html {
  const ms = Math.max(0, Date.parse(now) - Date.parse(since));
  return html`<time datetime="${since}" title="since ${absolute(since)}">for ${span(ms)}</time>`;
}

const HEIGHT = 20;
const MINUTES = 120;

/** Oldest first, with gaps for missing figures. */
export function sparkline(stats: readonly (number | null)[], label: string, colour = 'line'): Html {
  const highest = Math.max(...stats.map((figure) => figure ?? 0), 0);
  const y = (figure: number) => (highest === 0 ? HEIGHT - 1 : HEIGHT - 1 - (figure / highest) * (HEIGHT - 2));
  let path = '';
  let isDown = false;
  for (const [x, figure] of stats.entries()) {
    if (figure !== null) path += `${isDown ? 'L' : 'M'}${x} ${shortened(y(figure))}`;
    // A single figure is a point.
    if (figure !== null && !isDown && (stats[x + 1] ?? null) === null) path += 'h1';
    isDown = figure !== null;
  }
  const width = Math.max(1, stats.length - 1);
  return html`<svg class="spark ${colour}" viewBox="0 0 ${width} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}"><path d="${path}"/></svg>`;
}

/** Two hours, a column per minute: full height if a grant failed, half if all succeeded. */
export function timeline(minutes: readonly MinuteReport[], now: string): Html {
  const last = Math.floor(Date.parse(now) / MINUTE_MS);
  const columns = (fails: boolean, height: number) =>
    minutes
      .filter(({ failed }) => failed > 0 === fails)
      .map(({ at }) => MINUTES - 1 - last + Math.floor(Date.parse(at) / MINUTE_MS))
      .filter((x) => x >= 0 && x < MINUTES)
      .map((x) => `M${x} ${HEIGHT - height}h1v${height}h-1z`)
      .join('');
  const succeeded = minutes.reduce((sum, minute) => sum + minute.succeeded, 0);
  const failed = minutes.reduce((sum, minute) => sum + minute.failed, 0);
  const label = `Grants of the last two hours: ${succeeded} succeeded, ${failed} failed`;
  return html`<figure><svg class="timeline" viewBox="0 0 ${MINUTES} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}"><path class="ok" d="${columns(false, HEIGHT / 2)}"/><path class="failing" d="${columns(true, HEIGHT)}"/></svg><figcaption><span>2 h ago</span><span>${succeeded} succeeded, ${failed} failed</span><span>now</span></figcaption></figure>`;
}

function shortened(figure: number): string {
  return String(Math.round(figure * 10) / 10);
}
