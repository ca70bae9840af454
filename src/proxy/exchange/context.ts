import type { Clock } from '../../clock.ts';
import type { ProxyLimits } from '../../config/config.ts';
import type { Logger } from '../../log/logger.ts';
import type { RouteMetrics } from '../metrics.ts';
import type { Served } from '../routing/find-destination.ts';

/** Requests in flight over all connections, and whether new ones are taken. */
export interface ProxyLoad {
  inFlight: number;
  draining: boolean;
}

/** What every request of one listener shares. */
export interface ExchangeContext extends Served {
  /** Names that a Host may have, where requests of other sites are refused; absent where they are not looked for. */
  readonly ownNames: ReadonlySet<string> | undefined;
  readonly limits: ProxyLimits;
  readonly clock: Clock;
  readonly log: Logger;
  readonly instanceId: string;
  /** Counts what no route matched. */
  readonly noRoute: RouteMetrics;
  readonly load: ProxyLoad;
}
