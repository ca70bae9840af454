import type { TLSSocket } from 'node:tls';
import { type CountedErrorCode, SidecarError } from '../../platform/errors.ts';
import { AcceptedConnection } from '../downstream/accepted-connection.ts';
import type { DownstreamContext } from '../downstream/connection.ts';
import type { Protocol } from '../http/messages.ts';
import { logFailure } from '../proxy-error.ts';
import type { ListedHost } from '../routing/destinations.ts';
import type { ActiveRoute, Destination } from '../routing/routes.ts';
import {
  type DetachedConnection,
  type IncomingRequest,
  type UpstreamStream,
  type UpstreamStreams,
  WithoutRequest,
} from '../streams/contract.ts';
import { isDraining } from '../transaction/admission.ts';
import type { RequestService } from '../transaction/listener-context.ts';
import type { Transaction } from '../transaction/transaction.ts';
import { Handshake, VERDICT_MS } from './handshake.ts';
import type { LeafCertificates } from './interception-ca.ts';

/** Each costs a signature. */
const MAX_HANDSHAKES = 256;

interface TlsTerminationOptions {
  readonly leaves: Pick<LeafCertificates, 'contextFor'>;
  /** Of the listener. */
  readonly context: () => DownstreamContext;
}

export interface TerminatedConnection {
  readonly connection: Omit<DetachedConnection, 'writer'>;
  readonly listed: ListedHost;
  readonly route: ActiveRoute;
  /** The handshake has succeeded or failed. */
  readonly onOver: () => void;
}

export class TlsTermination {
  readonly #options: TlsTerminationOptions;
  #handshakes = 0;

  constructor(options: TlsTerminationOptions) {
    this.#options = options;
  }

  /** @throws {SidecarError} `overloaded`. */
  assertRoom(): void {
    if (this.#handshakes < MAX_HANDSHAKES) return;
    throw new SidecarError('overloaded', `${MAX_HANDSHAKES} TLS handshakes are under way`);
  }

  interceptConnect(transaction: Transaction, destination: Destination): RequestService {
    return {
      body: undefined,
      sentBy: undefined,
      heldBytes: 0,
      begin: () => this.#beginConnect(transaction, destination),
      flushRequest() {},
      onDownstreamDrain() {},
      release() {},
    };
  }

  begin(terminated: TerminatedConnection): void {
    this.#handshakes += 1;
    const { clock, log } = this.#options.context();
    const { connection, route, onOver } = terminated;
    const { asked } = terminated.listed;
    const { upstream, observer, config } = route;
    new Handshake({
      connection,
      clock,
      host: asked.host,
      contextFor: (host) => this.#options.leaves.contextFor(host),
      spoken: () => upstream.negotiatedProtocol,
      ask: (onKnown) => askUpstream(upstream, onKnown),
      onSecured: (socket) => {
        this.#handshakes -= 1;
        onOver();
        this.#awaitVerdict(socket, () => {
          const rejected = 'client_rejected_certificate';
          observer.error(rejected);
          const what = `the app ended its connection to ${asked.host} after the handshake and asked nothing`;
          logFailure(log, config.name, withAdvice(new SidecarError(rejected, what)));
        });
        this.#speak(socket, terminated);
      },
      onFailed: (error) => {
        this.#handshakes -= 1;
        observer.error(error.code);
        logFailure(log, config.name, withAdvice(error));
        onOver();
      },
    });
  }

  #beginConnect(transaction: Transaction, { listed, route }: Destination): void {
    if (listed === undefined) throw new SidecarError('internal', 'a CONNECT that is not to be intercepted');
    this.assertRoom();
    const connection = transaction.stream.detach();
    if (connection === undefined) {
      throw new SidecarError(
        'destination_not_allowed',
        'a CONNECT that comes over HTTP/2 is not intercepted: HTTP/1.1 to the proxy is',
      );
    }
    transaction.beginTunnel(200);
    let served: Transaction | undefined = transaction;
    this.begin({
      connection,
      listed: { list: 'forwardProxy', asked: listed },
      route,
      // The connection's listeners outlast the CONNECT and must not keep it.
      onOver: () => {
        served?.settle(this.#options.context().clock.monotonicMs());
        served = undefined;
      },
    });
  }

  #awaitVerdict(socket: TLSSocket, onRejected: () => void): void {
    const { clock, load } = this.#options.context();
    const untilMs = clock.monotonicMs() + VERDICT_MS;
    const onClose = (): void => {
      if (clock.monotonicMs() < untilMs && !isDraining(load)) onRejected();
    };
    socket.once('close', onClose);
    socket.once('data', () => socket.off('close', onClose));
  }

  #speak(socket: TLSSocket, { connection, listed }: TerminatedConnection): void {
    const context = this.#options.context();
    const accepted = new AcceptedConnection(socket, { ...context, listed }, () => connection.onFree());
    connection.handOff(accepted);
  }
}

/** The only failure that the app's owner can fix. */
function withAdvice(error: SidecarError<CountedErrorCode>): SidecarError<CountedErrorCode> {
  if (error.code !== 'client_rejected_certificate') return error;
  return new SidecarError(
    error.code,
    `${error.message}; it has to trust ca.crt of interception.directory, as it is since the sidecar's last start`,
  );
}

/** Stands for the coming request: any HTTP version could carry it. */
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
 * The verified connection is kept for the first request.
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
    onConnected(instead?: UpstreamStream) {
      const onConnected = instead ?? stream;
      stream = undefined;
      onConnected?.release();
      tell(onConnected?.protocol);
    },
    onError() {
      stream = undefined;
      // The request will fail with a readable error.
      tell(undefined);
    },
  });
  const acquired = upstream.acquire(ANY_REQUEST, user, 0);
  if (acquired.ready) {
    acquired.release();
    tell(acquired.protocol);
  } else if (!over) stream = acquired;
  return () => {
    over = true;
    stream?.cancel();
    stream = undefined;
  };
}
