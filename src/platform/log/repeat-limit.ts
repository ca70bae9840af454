import type { Clock } from '../time/clock.ts';

const WINDOW_MS = 10_000;
const EVENTS_PER_WINDOW = 10;
/** The others share one allowance. */
const MAX_KINDS = 256;
const ALL_OTHERS = '\0';

interface HeldBack {
  readonly leftOut: number;
  readonly withinMs: number;
  readonly mixed: boolean;
}

interface Window {
  events: number;
  leftOut: number;
  readonly summarize: () => void;
}

/** Admits the first few events of a kind in each period, and counts the others. */
export class RepeatLimit {
  readonly #clock: Clock;
  readonly #windows = new Map<string, Window>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param summarize called at the end of the period or program, if any were held back. */
  admits(kind: string, summarize: (heldBack: HeldBack) => void): boolean {
    const key = this.#windows.has(kind) || this.#windows.size < MAX_KINDS ? kind : ALL_OTHERS;
    const window = this.#windows.get(key);
    if (window === undefined) {
      this.#open(key, summarize);
      return true;
    }
    window.events += 1;
    if (window.events <= EVENTS_PER_WINDOW) return true;
    window.leftOut += 1;
    return false;
  }

  /** Reports what the open periods have held back: for the end of the program. */
  summarizeOpen(): void {
    for (const window of [...this.#windows.values()]) window.summarize();
  }

  #open(key: string, summarize: (heldBack: HeldBack) => void): void {
    const window: Window = {
      events: 1,
      leftOut: 0,
      summarize() {
        const { leftOut } = window;
        window.leftOut = 0;
        if (leftOut > 0) summarize({ leftOut, withinMs: WINDOW_MS, mixed: key === ALL_OTHERS });
      },
    };
    this.#windows.set(key, window);
    this.#clock.after(WINDOW_MS, () => {
      this.#windows.delete(key);
      window.summarize();
    });
  }
}
