import type { Socket } from 'node:net';
import type { Logger } from '../../platform/log/logger.ts';
import type { Clock } from '../../platform/time/clock.ts';
import type { Protocol } from '../http/messages.ts';
import type { RouteObserver } from '../observer.ts';
import type { ListedHost } from '../routing/destinations.ts';
import type { Destination } from '../routing/routes.ts';
import type { RuleContext } from './admission.ts';
import type { Authorizer } from './authorizer.ts';
import type { ConfigSnapshot } from './config-snapshot.ts';
import type { RequestBody } from './replayable-body.ts';
import type { Transaction } from './transaction.ts';

export interface ListenerContext extends RuleContext {
  /** Called for each request. */
  readonly snapshot: () => ConfigSnapshot;
  /** The host that the proxy stands in for on this connection; requests go nowhere else. */
  readonly listed?: ListedHost;
  /** Absent if everyone may use the listener. */
  readonly authorizer?: Authorizer;
  readonly clock: Clock;
  readonly log: Logger;
  /** Observes requests without a route. */
  readonly noRoute: RouteObserver;
  /** Serves a CONNECT to a listed host. Absent where no TLS ends here. */
  readonly interceptConnect?: (transaction: Transaction, destination: Destination) => RequestService;
}

export interface RequestService {
  readonly body: RequestBody | undefined;
  /** Undefined for an unsent request and for a tunnel. */
  readonly sentBy: Protocol | undefined;
  readonly heldBytes: number;
  /** Of an upstream connection that only this request uses. */
  readonly upstreamSocket?: Socket | undefined;
  /** @throws {SidecarError} */
  begin(): void;
  /** If the upstream falls behind, the app is paused. */
  flushRequest(): void;
  onDownstreamDrain(): void;
  release(): void;
}
