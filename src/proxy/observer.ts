import type { ProxyErrorCode } from '../errors.ts';

export type ReplayResult = 'success' | 'failure';

/** All that the data path tells of the requests of one route: what is counted of them comes from here alone. */
export interface RouteObserver {
  started(): void;
  /** The end of a request that has `started`. */
  ended(method: string, status: number, durationMs: number): void;
  /** A request that was refused before it counted as in flight. */
  refused(method: string, status: number, durationMs: number): void;
  /** Something that was answered with an error and could not be read as a request, or came on a connection too many. */
  turnedAway(code: ProxyErrorCode, status: number): void;
  error(code: ProxyErrorCode): void;
  upstreamUnauthorized(): void;
  replayed(result: ReplayResult): void;
}
