/** Bytes at three points of a run. Medians of several samples each, because a heap is a saw. */
export interface MemoryPoints {
  readonly start: number;
  readonly warm: number;
  readonly end: number;
}

/** Warm from half of the run on: the runtime takes minutes to grow its heap to the size that the load asks for. */
const WARM_FROM = 0.5;

/** Each point but the first is a tenth of the run. */
const WINDOW = 0.1;

/** The sidecar's anonymous memory over a run. */
export class MemoryRecord {
  readonly #samples: { readonly atMs: number; readonly bytes: number }[] = [];

  /** `atMs` counts from the start of the load. */
  add(atMs: number, bytes: number): void {
    this.#samples.push({ atMs, bytes });
  }

  get latest(): number | undefined {
    return this.#samples.at(-1)?.bytes;
  }

  /** Undefined when a point has no sample. @param lengthMs of the run. */
  points(lengthMs: number): MemoryPoints | undefined {
    const within = (from: number): number | undefined =>
      median(
        this.#samples
          .filter(({ atMs }) => atMs >= from * lengthMs && atMs <= (from + WINDOW) * lengthMs)
          .map(({ bytes }) => bytes),
      );
    const start = this.#samples[0]?.bytes;
    const warm = within(WARM_FROM);
    const end = within(1 - WINDOW);
    return start === undefined || warm === undefined || end === undefined ? undefined : { start, warm, end };
  }
}

function median(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}
