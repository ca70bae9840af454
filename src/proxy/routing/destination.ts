import type { ActiveRoute } from './active-route.ts';
import type { AskedDestination } from './forward-destination.ts';

/** Where a request goes. */
export interface Destination {
  readonly route: ActiveRoute;
  /** The request target sent there. */
  readonly target: string;
  /** Whether bytes are tunnelled there (CONNECT) instead of a request being sent. */
  readonly tunnel: boolean;
  /** What a connection is to that ends here: of its CONNECT, if there was one, and of each request that comes on it. */
  readonly listed?: AskedDestination;
}
