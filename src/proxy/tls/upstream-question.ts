import type { Protocol } from '../http/messages.ts';
import {
  type IncomingRequest,
  type UpstreamStream,
  type UpstreamStreams,
  WithoutRequest,
} from '../streams/contract.ts';

/** Stands for the request that is to come: one that any version of HTTP could carry. */
const ANY_REQUEST: IncomingRequest = {
  protocol: 'h2',
  method: 'OPTIONS',
  target: '*',
  targetForm: 'asterisk',
  host: undefined,
  fields: [],
  connectionOptions: [],
  contentLength: undefined,
};

/**
 * Finds out what an upstream speaks before any request, by a connection that is verified like any other and kept for
 * the first request.
 * @param onKnown is called once, unless ended before; undefined if no connection could be made.
 * @returns what ends it.
 */
export function askUpstream(
  upstream: UpstreamStreams,
  onKnown: (spoken: Protocol | undefined) => void,
): () => void {
  let stream: UpstreamStream | undefined;
  let over = false;
  const tell = (spoken: Protocol | undefined): void => {
    if (over) return;
    over = true;
    onKnown(spoken);
  };
  const user = Object.assign(new WithoutRequest(), {
    connected(instead?: UpstreamStream) {
      const connected = instead ?? stream;
      stream = undefined;
      connected?.giveBack();
      tell(connected?.protocol);
    },
    upstreamFailed() {
      stream = undefined;
      // The request will fail the same way, with an error that its app can read.
      tell(undefined);
    },
  });
  const acquired = upstream.acquire(ANY_REQUEST, user, 0);
  if (acquired.ready) {
    acquired.giveBack();
    tell(acquired.protocol);
  } else if (!over) stream = acquired;
  return () => {
    over = true;
    stream?.abandon();
    stream = undefined;
  };
}
