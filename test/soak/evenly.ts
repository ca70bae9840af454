import { pause } from './pause.ts';

/** Changes that were made while load went on. */
export interface Changes {
  readonly begun: number;
  /** Of each that was taken, from its end until it was seen to have taken effect; ms. */
  readonly delaysMs: readonly number[];
}

export interface Change {
  /** Makes the change of this number, from 1. */
  readonly make: (number: number) => Promise<void>;
  /** Whether the sidecar has taken it. Gives up, with false, when `over` aborts. */
  readonly taken: (number: number, over: AbortSignal) => Promise<boolean>;
}

/** Longer than the sidecar needs if it misses the notification and finds out by its poll. */
const BOUND_MS = 45_000;

/** Makes `count` changes, evenly over `durationMs` from now, or until `stop`. */
export async function changeEvenly(
  count: number,
  durationMs: number,
  { make, taken }: Change,
  stop: AbortSignal,
): Promise<Changes> {
  const startedAt = performance.now();
  const delaysMs: number[] = [];
  let begun = 0;
  while (begun < count) {
    const dueAt = startedAt + (durationMs * (begun + 1)) / (count + 1);
    await pause(dueAt - performance.now(), stop);
    if (stop.aborted) break;
    begun += 1;
    await make(begun);
    const madeAt = performance.now();
    const bound = new AbortController();
    const bounding = pause(BOUND_MS, AbortSignal.any([stop, bound.signal])).then(() => bound.abort());
    if (await taken(begun, bound.signal)) delaysMs.push(performance.now() - madeAt);
    bound.abort();
    await bounding;
  }
  return { begun, delaysMs };
}
