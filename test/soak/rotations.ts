import { pause } from './pause.ts';
import type { ProtectedApi } from './protected-api.ts';
import type { Provider } from './provider.ts';

export interface Rotations {
  readonly begun: number;
  /** Of each that was taken, from the swap of the Secret to the first request with a token for it; ms. */
  readonly delaysMs: readonly number[];
}

/** Longer than the sidecar needs if it misses the notification and finds out by its poll. */
const BOUND_MS = 45_000;

/** Rotates the client secret `count` times, evenly over `durationMs` from now, or until `stop`. */
export async function rotate(
  count: number,
  durationMs: number,
  provider: Provider,
  api: ProtectedApi,
  stop: AbortSignal,
): Promise<Rotations> {
  const startedAt = performance.now();
  const delaysMs: number[] = [];
  let begun = 0;
  while (begun < count) {
    const dueAt = startedAt + (durationMs * (begun + 1)) / (count + 1);
    await pause(dueAt - performance.now(), stop);
    if (stop.aborted) break;
    begun += 1;
    await provider.rotateTo(begun);
    const swappedAt = performance.now();
    const bound = new AbortController();
    const taken = await Promise.race([
      api.seenFrom(begun).then(() => true),
      pause(BOUND_MS, AbortSignal.any([stop, bound.signal])).then(() => false),
    ]);
    bound.abort();
    if (taken) delaysMs.push(performance.now() - swappedAt);
  }
  return { begun, delaysMs };
}
