import type { ActiveRoute } from './active-route.ts';
import type { AskedDestination } from './forward-destination.ts';

/** Where a request goes. */
export interface Destination {
  readonly route: ActiveRoute;
  /** The request target sent there. */
  readonly target: string;
  /** Whether bytes are tunnelled there (CONNECT) instead of a request being sent. */
  readonly tunnel: boolean;
  /** What a CONNECT asked for whose TLS ends here: of that CONNECT, and of each request that comes through it. */
  readonly intercepted?: AskedDestination;
}
