import type { Clock } from '../../clock.ts';
import type { Logger } from '../../log/logger.ts';
import type { RouteObserver } from '../observer.ts';
import type { ListedHost } from '../routing/destinations.ts';
import type { RuleContext } from './admission-rules.ts';
import type { Gatekeeper } from './gatekeeper.ts';
import type { Generation } from './generation.ts';
import type { Interceptor } from './interceptor.ts';

/** What every request of one listener shares. */
export interface ExchangeContext extends RuleContext {
  /** Asked anew for each request: another may be in use by then. */
  readonly generation: () => Generation;
  /** What the connection is to, of those that end here in the place of a host: its requests go there, and nowhere else. */
  readonly listed?: ListedHost;
  /** Absent where whoever reaches the listener may use all of it. */
  readonly gatekeeper?: Gatekeeper;
  readonly clock: Clock;
  readonly log: Logger;
  /** Is told of what no route matched. */
  readonly noRoute: RouteObserver;
  /** Absent where no TLS ends here. */
  readonly interceptor?: Interceptor;
}
