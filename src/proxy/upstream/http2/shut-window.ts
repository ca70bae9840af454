/** Tracks how long the connection's window, which its requests share, has held back what they have to send. */
export class ShutWindow {
  #sinceMs: number | undefined;

  /** Says whether something waits and the window is shut. */
  seen(isShut: boolean, nowMs: number): void {
    if (!isShut) this.#sinceMs = undefined;
    else this.#sinceMs ??= nowMs;
  }

  /** Whether it was shut when last seen, and must be looked at again. */
  get watches(): boolean {
    return this.#sinceMs !== undefined;
  }

  /** For how long it has been seen shut, in ms. */
  shutMs(nowMs: number): number {
    return this.#sinceMs === undefined ? 0 : nowMs - this.#sinceMs;
  }
}
