import { type Html, html } from './html.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** `45 s`, `12 min`, `3 h 20 min`, `2 days`: as exact as a reader needs. */
export function span(ms: number): string {
  const given = Math.abs(ms);
  if (given < 2 * MINUTE_MS) return `${Math.round(given / SECOND_MS)} s`;
  if (given < 2 * HOUR_MS) return `${Math.round(given / MINUTE_MS)} min`;
  if (given < 2 * DAY_MS) {
    const minutes = Math.round(given / MINUTE_MS);
    const rest = minutes % 60;
    return `${Math.floor(minutes / 60)} h${rest === 0 ? '' : ` ${rest} min`}`;
  }
  return `${Math.round(given / DAY_MS)} days`;
}

/** `2026-11-22 03:04:05 UTC` */
export function absolute(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}

/** An instant relative to `now`, with the absolute one as its tooltip: `12 min ago`, `in 45 s`. */
export function time(iso: string, now: string): Html {
  const ms = Date.parse(iso) - Date.parse(now);
  const text = Math.abs(ms) < SECOND_MS ? 'now' : ms < 0 ? `${span(ms)} ago` : `in ${span(ms)}`;
  return html`<time datetime="${iso}" title="${absolute(iso)}">${text}</time>`;
}

/** How long something has been so: `for 12 min`. */
export function lasting(since: string, now: string): Html {
  const ms = Math.max(0, Date.parse(now) - Date.parse(since));
  return html`<time datetime="${since}" title="since ${absolute(since)}">for ${span(ms)}</time>`;
}
