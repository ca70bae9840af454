/** How far one HTTP/2 connection to an upstream is. */
export type ConnectionState =
  | { readonly kind: 'open' }
  /**
   * Checks that the upstream is still there before further requests are sent. `behind`: PING itself was waiting for the
   * system to take what was written before it.
   */
  | { readonly kind: 'examined'; readonly untilMs: number; readonly behind: boolean }
  /** Carries no further requests, and closes with its present ones. */
  | { readonly kind: 'ending' }
  /** Everything has been written; the last of it is leaving. */
  | { readonly kind: 'closing'; readonly untilMs: number }
  | { readonly kind: 'gone' };

export const OPEN: ConnectionState = { kind: 'open' };
export const ENDING: ConnectionState = { kind: 'ending' };
export const GONE: ConnectionState = { kind: 'gone' };
