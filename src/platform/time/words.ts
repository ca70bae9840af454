/** Times as people read them: to the second, an instant never without its distance from now. */

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** `45 s`, `12 min`, `3 h 20 min`, `2 days`. */
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
export function instant(atMs: number): string {
  const iso = new Date(atMs).toISOString();
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}

/** `12 min ago`, `now`, `in 45 s` */
export function distance(atMs: number, nowMs: number): string {
  const ms = atMs - nowMs;
  if (Math.abs(ms) < SECOND_MS) return 'now';
  return ms < 0 ? `${span(ms)} ago` : `in ${span(ms)}`;
}

/** `2026-11-22 03:04:05 UTC (12 min ago)` */
export function instantAndDistance(atMs: number, nowMs: number): string {
  return `${instant(atMs)} (${distance(atMs, nowMs)})`;
}
