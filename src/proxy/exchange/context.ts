import type { Clock } from '../../clock.ts';
import type { Logger } from '../../log/logger.ts';
import type { RouteObserver } from '../observer.ts';
import type { DestinationFinder } from '../routing/destinations.ts';
import type { Admission, RuleContext } from './admission-rules.ts';
import type { Interceptor } from './interceptor.ts';

/** What every request of one listener shares. */
export interface ExchangeContext extends RuleContext {
  /** Asked anew for each request: it may be replaced, by which requests under way are not touched. */
  destinations: DestinationFinder;
  readonly admission: Admission;
  readonly clock: Clock;
  readonly log: Logger;
  /** Is told of what no route matched. */
  readonly noRoute: RouteObserver;
  /** Absent where no TLS ends here. */
  readonly interceptor?: Interceptor;
}
