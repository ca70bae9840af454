import type { ProxyLimits } from '../../config/config.ts';
import type { Destination } from '../routing/destination.ts';
import type { DestinationFinder } from '../routing/destinations.ts';
import type { IncomingRequest } from '../streams/message.ts';
import type { ProxyLoad } from './proxy-load.ts';

/** What rules may consult besides the request; lasts as long as the proxy. */
export interface RuleContext {
  /** Identifies this proxy to the loop guard. */
  readonly instanceId: string;
  readonly load: ProxyLoad;
}

/** What rules may consult of the configuration in use. */
interface RuleSettings {
  readonly destinations: Pick<DestinationFinder, 'ownNames'>;
  readonly limits: ProxyLimits;
}

/** Refuses a request by its head and by where it arrived. @throws {SidecarError} */
export type ArrivalRule = (request: IncomingRequest, context: RuleContext) => void;

/** Refuses a request by its destination as well. @throws {SidecarError} */
export type DestinationRule = (
  request: IncomingRequest,
  destination: Destination,
  context: RuleContext,
  settings: RuleSettings,
) => void;

/** Decides whether a request may go on, before anything is spent on it. The first rule that refuses wins. */
export interface Admission {
  /** Run before the destination is looked up. */
  readonly onArrival: readonly ArrivalRule[];
  /** Run once the request counts for its route. */
  readonly onDestination: readonly DestinationRule[];
}
