import type { ExchangeContext } from '../exchange/context.ts';
import type { Network } from '../io/network.ts';
import type { PeerWatch } from './peer-watch.ts';

/** What every connection of one listener shares. */
export interface AppContext extends ExchangeContext {
  readonly network: Network;
  /** Tells which clients have left. */
  readonly peers: PeerWatch;
  /** Observes connections that were ended because they asked for more than they may (RFC 9113 §10.5), by reason. */
  readonly http2Abuse: (reason: string) => void;
}
