/** How far one HTTP/2 connection to an upstream is. */
export type ConnectionState =
  | { readonly kind: 'open' }
  /**
   * Before further requests are sent it is found out whether the upstream is still there. `behind`: the question itself
   * waited for the system to take what was written before it.
   */
  | { readonly kind: 'examined'; readonly untilMs: number; readonly behind: boolean }
  /** Carries no further requests, and ends with those that it carries. */
  | { readonly kind: 'ending' }
  /** All is said; what was said last is leaving. */
  | { readonly kind: 'closing'; readonly untilMs: number }
  | { readonly kind: 'gone' };

export const OPEN: ConnectionState = { kind: 'open' };
export const ENDING: ConnectionState = { kind: 'ending' };
export const GONE: ConnectionState = { kind: 'gone' };
