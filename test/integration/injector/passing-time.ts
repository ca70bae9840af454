import { subscribe } from 'node:diagnostics_channel';
import { setTimeout as real } from 'node:timers/promises';
import type { ManualClock } from '../../support/manual-clock.ts';

/** For how long the real time waits for one answer: a test may hold one back for good. */
const MAX_MS = 1000;

/** What this process has asked over HTTP and has no answer to yet, and since when. */
const asked = new Map<unknown, number>();
subscribe('undici:request:create', (told) => asked.set(requestOf(told), performance.now()));
for (const end of ['headers', 'error'])
  subscribe(`undici:request:${end}`, (told) => asked.delete(requestOf(told)));

function requestOf(told: unknown): unknown {
  return (told as { readonly request: unknown }).request;
}

/**
 * Lets time pass until `condition` holds: a second of the manual clock, or `stepMs`, for each two milliseconds of the real one, and
 * none while an answer is under way, so that it arrives before timers that wait for it run out. A condition that never
 * holds ends with the test's timeout.
 */
export async function passUntil(clock: ManualClock, condition: () => boolean, stepMs = 1000): Promise<void> {
  while (!condition()) {
    await real(2);
    while (isAwaited()) await real(1);
    if (!condition()) await clock.advance(stepMs);
  }
}

function isAwaited(): boolean {
  const sinceMs = performance.now() - MAX_MS;
  return [...asked.values()].some((atMs) => atMs > sinceMs);
}
