import type { ActiveRoute } from './active-route.ts';
import type { AskedDestination } from './forward-destination.ts';

/** Where a request goes. */
export interface Destination {
  readonly route: ActiveRoute;
  /** The request target sent upstream. */
  readonly target: string;
  /** Whether bytes are tunnelled there (CONNECT) instead of a request being sent. */
  readonly tunnel: boolean;
  /** What a connection that ends here leads to: set for its CONNECT, if any, and for each request on it. */
  readonly listed?: AskedDestination;
}
