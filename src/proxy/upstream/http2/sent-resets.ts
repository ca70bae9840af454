/**
 * Counts the streams that this side resets on one connection. Servers end a connection whose streams are reset too often
 * (rapid reset, CVE-2023-44487), and with it the requests of everybody who shares it: Netty, and so grpc-java, at the
 * 201st in 30 s, which is the least that is known.
 */

const WINDOW_MS = 30_000;

/**
 * Resets in one window that retire a connection. Around the end of a window twice as many may come, and then one for each
 * of the requests (`MAX_STREAMS`) that it still carries: fewer than 200 in all.
 */
export const MAX_RESETS = 32;

export class SentResets {
  #count = 0;
  #windowEndsAtMs = Number.NEGATIVE_INFINITY;

  /** One is sent. @returns whether the connection may carry no further requests. */
  sent(nowMs: number): boolean {
    if (nowMs >= this.#windowEndsAtMs) {
      this.#windowEndsAtMs = nowMs + WINDOW_MS;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count >= MAX_RESETS;
  }
}
