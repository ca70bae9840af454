import type { ProxyLimits } from '../../config/config.ts';
import type { Destination } from '../routing/destination.ts';
import type { DestinationFinder } from '../routing/destinations.ts';
import type { IncomingRequest } from '../streams/message.ts';
import type { ProxyLoad } from './proxy-load.ts';

/** What rules may go by beside the request, as long as the proxy runs. */
export interface RuleContext {
  /** Of this proxy, for the loop guard. */
  readonly instanceId: string;
  readonly load: ProxyLoad;
}

/** What rules may go by of the configuration that is in use. */
export interface RuleSettings {
  readonly destinations: Pick<DestinationFinder, 'ownNames'>;
  readonly limits: ProxyLimits;
}

/** Refuses a request by what it says and where it came. @throws {SidecarError} */
export type ArrivalRule = (request: IncomingRequest, context: RuleContext) => void;

/** Refuses a request by where it would go, too. @throws {SidecarError} */
export type DestinationRule = (
  request: IncomingRequest,
  destination: Destination,
  context: RuleContext,
  settings: RuleSettings,
) => void;

/** What decides, before anything is spent on it, whether a request may go on. The first rule that refuses has its word. */
export interface Admission {
  /** Before its destination is looked for. */
  readonly onArrival: readonly ArrivalRule[];
  /** From here on it counts for its route. */
  readonly onDestination: readonly DestinationRule[];
}
