import type { Delivery } from '../../streams/upstream-stream.ts';
import type { UpstreamState } from './state.ts';

/**
 * What became of the request of a connection that failed in this state.
 * @param byPeer whether the upstream or the network ended it, rather than a bound or a rule of the sidecar.
 * @param anyLeft whether the system took any of the request.
 */
export function deliveryOf(state: UpstreamState, byPeer: boolean, anyLeft: boolean): Delivery {
  if (state.kind === 'examined' || state.kind === 'lent') return 'unsent';
  if (state.kind !== 'busy' || !byPeer) return 'lost';
  // Nothing has left if the system refused the write at once.
  if (!anyLeft) return 'unsent';
  return state.reused && !state.anyAnswer ? 'unanswered' : 'lost';
}
