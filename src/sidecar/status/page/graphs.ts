/** Small graphs of the past, drawn by the server, so that they need no script. */

import type { MinuteReport } from '../report.ts';
import { type Html, html } from './html.ts';

const HEIGHT = 20;
const MINUTES = 120;
const MINUTE_MS = 60_000;

/** A line of figures, oldest first, with gaps for missing ones. */
export function sparkline(figures: readonly (number | null)[], label: string, colour = 'line'): Html {
  const highest = Math.max(...figures.map((figure) => figure ?? 0), 0);
  const y = (figure: number) => (highest === 0 ? HEIGHT - 1 : HEIGHT - 1 - (figure / highest) * (HEIGHT - 2));
  let path = '';
  let isDown = false;
  for (const [x, figure] of figures.entries()) {
    if (figure !== null) path += `${isDown ? 'L' : 'M'}${x} ${shortened(y(figure))}`;
    // A single figure is a point.
    if (figure !== null && !isDown && (figures[x + 1] ?? null) === null) path += 'h1';
    isDown = figure !== null;
  }
  const width = Math.max(1, figures.length - 1);
  return html`<svg class="spark ${colour}" viewBox="0 0 ${width} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}"><path d="${path}"/></svg>`;
}

/** Two hours of grants, a column per minute: full height if one failed, half if all succeeded. */
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
