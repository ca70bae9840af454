import type { ActiveRoute } from './active-route.ts';

/** Where a request goes. */
export interface Destination {
  readonly route: ActiveRoute;
  /** The request target sent there. */
  readonly target: string;
  /** Whether bytes are tunnelled there (CONNECT) instead of a request being sent. */
  readonly tunnel: boolean;
}
