import type { Logger } from '../../platform/log/logger.ts';
import type { Clock } from '../../platform/time/clock.ts';
import type { RouteObserver } from '../observer.ts';
import type { ListedHost } from '../routing/destinations.ts';
import type { RuleContext } from './admission-rules.ts';
import type { Authorizer } from './authorizer.ts';
import type { Generation } from './generation.ts';
import type { Interceptor } from './interceptor.ts';

/** What every request of one listener shares. */
export interface ExchangeContext extends RuleContext {
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
  /** Absent where no TLS ends here. */
  readonly interceptor?: Interceptor;
}
