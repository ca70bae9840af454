/** What all requests of a listener share, and what a transaction knows of whatever serves its request. */

import type { Socket } from 'node:net';
import type { Logger } from '../../platform/log/logger.ts';
import type { Clock } from '../../platform/time/clock.ts';
import type { Protocol } from '../http/messages.ts';
import type { RouteObserver } from '../observer.ts';
import type { ListedHost } from '../routing/destinations.ts';
import type { Destination } from '../routing/routes.ts';
import type { RuleContext } from './admission.ts';
import type { Authorizer } from './authorizer.ts';
import type { Generation } from './generation.ts';
import type { RequestBody } from './replayable-body.ts';
import type { Transaction } from './transaction.ts';

/** What every request of one listener shares. */
export interface ListenerContext extends RuleContext {
  /** Called for each request: the generation in use may have changed. */
  readonly generation: () => Generation;
  /** The host that the proxy stands in for on this connection: its requests go there and nowhere else. */
  readonly listed?: ListedHost;
  /** Absent where everyone who reaches the listener may use all of it. */
  readonly authorizer?: Authorizer;
  readonly clock: Clock;
  readonly log: Logger;
  /** Observes requests that no route matched. */
  readonly noRoute: RouteObserver;
  /** Serves a CONNECT to a listed host: the TLS that comes through it ends here. Absent where no TLS ends here. */
  readonly interceptConnect?: (transaction: Transaction, destination: Destination) => RequestService;
}

/** What is done for an admitted request: it is forwarded, or a tunnel is made. */
export interface RequestService {
  /** The request's body, on its way; undefined for a request without one. */
  readonly body: RequestBody | undefined;
  /** The HTTP version that the request was last sent with; undefined for an unsent request and for a tunnel. */
  readonly sentBy: Protocol | undefined;
  /** What is held of the request on its way, in bytes. */
  readonly heldBytes: number;
  /** Of the connection to the upstream that it has to itself. */
  readonly upstreamSocket?: Socket | undefined;
  /** @throws {SidecarError} */
  begin(): void;
  /** Flushes the request; an app that outpaces the upstream has to wait. */
  flushRequest(): void;
  /** The app takes more of the answer. */
  appReady(): void;
  /** Releases everything: the transaction has ended some other way. */
  release(): void;
}
