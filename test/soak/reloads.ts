import type { ListenAddress } from '../../src/config/config.ts';
import type { SoakConfiguration } from './configuration.ts';
import { pause } from './pause.ts';
import { readGeneration } from './sidecar-figures.ts';

export interface Reloads {
  readonly begun: number;
  /** Of each that was taken, from the swap of the file until it is in use; ms. */
  readonly delaysMs: readonly number[];
}

/** Longer than the sidecar needs if it misses the notification and finds out by its poll. */
const BOUND_MS = 45_000;

const LOOK_MS = 20;

/** Changes the configuration `count` times, evenly over `durationMs` from now, or until `stop`. */
export async function reload(
  count: number,
  durationMs: number,
  configuration: SoakConfiguration,
  admin: ListenAddress,
  stop: AbortSignal,
): Promise<Reloads> {
  const startedAt = performance.now();
  const delaysMs: number[] = [];
  let begun = 0;
  while (begun < count) {
    const dueAt = startedAt + (durationMs * (begun + 1)) / (count + 1);
    await pause(dueAt - performance.now(), stop);
    if (stop.aborted) break;
    begun += 1;
    await configuration.changeTo(begun);
    const swappedAt = performance.now();
    while (!stop.aborted && performance.now() - swappedAt < BOUND_MS) {
      if ((await readGeneration(admin)) === begun + 1) {
        delaysMs.push(performance.now() - swappedAt);
        break;
      }
      await pause(LOOK_MS, stop);
    }
  }
  return { begun, delaysMs };
}
