import type { SecureContext, TLSSocket } from 'node:tls';
import { type CountedErrorCode, SidecarError } from '../../errors.ts';
import { AcceptedConnection } from '../app/accepted-connection.ts';
import type { AppContext } from '../app/context.ts';
import type { Interceptor } from '../exchange/interceptor.ts';
import type { RequestService, ServedExchange } from '../exchange/request-service.ts';
import { logFailure } from '../proxy-error.ts';
import type { Destination } from '../routing/destination.ts';
import type { AskedDestination } from '../routing/forward-destination.ts';
import { InterceptedDestinations } from '../routing/intercepted-destinations.ts';
import type { GivenUpConnection } from '../streams/app-stream.ts';
import { VERDICT_MS } from './client-verdict.ts';
import { Handshake } from './handshake.ts';
import { askUpstream } from './upstream-question.ts';

/** Handshakes under way at once; a CONNECT more is answered 503 `overloaded`. Each costs a signature. */
export const MOST_HANDSHAKES = 256;

/** Where the certificates come from that apps are shown. */
export interface Leaves {
  contextFor(host: string): SecureContext;
}

export interface TlsInterceptorOptions {
  readonly leaves: Leaves;
  /** Of the listener whose connections these are. */
  readonly context: () => AppContext;
}

/** Ends the TLS of apps for listed hosts, and serves what they ask inside of it as the listener serves all else. */
export class TlsInterceptor implements Interceptor {
  readonly #options: TlsInterceptorOptions;
  #handshakes = 0;

  constructor(options: TlsInterceptorOptions) {
    this.#options = options;
  }

  serve(exchange: ServedExchange, destination: Destination): RequestService {
    return {
      body: undefined,
      sentBy: undefined,
      begin: () => this.#begin(exchange, destination),
      // Nothing of a CONNECT is sent, and its connection is given up at once.
      flushRequest() {},
      appReady() {},
      release() {},
    };
  }

  #begin(exchange: ServedExchange, { intercepted, route }: Destination): void {
    if (intercepted === undefined)
      throw new SidecarError('internal', 'a CONNECT that is not to be intercepted');
    if (this.#handshakes >= MOST_HANDSHAKES) {
      throw new SidecarError('overloaded', `${MOST_HANDSHAKES} TLS handshakes are under way`);
    }
    const connection = exchange.stream.giveUp();
    if (connection === undefined) {
      throw new SidecarError(
        'destination_not_allowed',
        'a CONNECT that comes over HTTP/2 is not intercepted: HTTP/1.1 to the proxy is',
      );
    }
    exchange.beginTunnel(200);
    this.#handshakes += 1;
    const { clock, log } = this.#options.context();
    const { upstream, observer, config } = route;
    new Handshake({
      connection,
      clock,
      host: intercepted.host,
      contextFor: (host) => this.#options.leaves.contextFor(host),
      spoken: () => upstream.speaks,
      ask: (onKnown) => askUpstream(upstream, onKnown),
      onSecured: (socket) => {
        this.#handshakes -= 1;
        // From here on its requests are counted, each for itself.
        exchange.settle(clock.monotonicMs());
        this.#awaitVerdict(socket, () => {
          const rejected = 'client_rejected_certificate';
          observer.error(rejected);
          const what = `the app ended its connection to ${intercepted.host} after the handshake and asked nothing`;
          logFailure(log, config.name, withAdvice(new SidecarError(rejected, what)));
        });
        this.#speak(socket, connection, intercepted);
      },
      onFailed: (error) => {
        this.#handshakes -= 1;
        observer.error(error.code);
        logFailure(log, config.name, withAdvice(error));
        exchange.settle(clock.monotonicMs());
      },
    });
  }

  #awaitVerdict(socket: TLSSocket, onRejected: () => void): void {
    const { clock, load } = this.#options.context();
    const untilMs = clock.monotonicMs() + VERDICT_MS;
    const onClose = (): void => {
      if (clock.monotonicMs() < untilMs && !load.draining) onRejected();
    };
    socket.once('close', onClose);
    socket.once('data', () => socket.off('close', onClose));
  }

  #speak(socket: TLSSocket, connection: GivenUpConnection, asked: AskedDestination): void {
    const context = this.#options.context();
    const accepted = new AcceptedConnection(
      socket,
      { ...context, destinations: new InterceptedDestinations(() => context.destinations, asked) },
      () => connection.onFree(),
    );
    connection.bequeath(accepted);
    if (context.load.draining) accepted.drain();
  }
}

/** The only failure that the app's owner can mend. */
function withAdvice(error: SidecarError<CountedErrorCode>): SidecarError<CountedErrorCode> {
  if (error.code !== 'client_rejected_certificate') return error;
  return new SidecarError(
    error.code,
    `${error.message}; it has to trust ca.crt of interception.directory, as it is since the sidecar's last start`,
  );
}
