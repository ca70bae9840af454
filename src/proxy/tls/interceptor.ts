import { SidecarError } from '../../platform/errors.ts';
import type { AppContext } from '../app/context.ts';
import type { Interceptor } from '../exchange/interceptor.ts';
import type { RequestService, ServedExchange } from '../exchange/request-service.ts';
import type { Destination } from '../routing/destination.ts';
import type { TlsTermination } from './termination.ts';

/** Serves a CONNECT to a listed host: the TLS that comes through it ends here. */
export class TlsInterceptor implements Interceptor {
  readonly #termination: TlsTermination;
  readonly #context: () => AppContext;

  /** @param context of the listener whose connections these are. */
  constructor(termination: TlsTermination, context: () => AppContext) {
    this.#termination = termination;
    this.#context = context;
  }

  serve(exchange: ServedExchange, destination: Destination): RequestService {
    return {
      body: undefined,
      sentBy: undefined,
      heldBytes: 0,
      begin: () => this.#begin(exchange, destination),
      // Nothing of a CONNECT is sent, and its connection is given up at once.
      flushRequest() {},
      appReady() {},
      release() {},
    };
  }

  #begin(exchange: ServedExchange, { listed, route }: Destination): void {
    if (listed === undefined) throw new SidecarError('internal', 'a CONNECT that is not to be intercepted');
    this.#termination.assertRoom();
    const connection = exchange.stream.giveUp();
    if (connection === undefined) {
      throw new SidecarError(
        'destination_not_allowed',
        'a CONNECT that comes over HTTP/2 is not intercepted: HTTP/1.1 to the proxy is',
      );
    }
    exchange.beginTunnel(200);
    let served: ServedExchange | undefined = exchange;
    this.#termination.begin({
      connection,
      listed: { list: 'forwardProxy', asked: listed },
      route,
      // What is listened for on the connection outlasts the CONNECT, of which nothing is to be kept.
      onOver: () => {
        served?.settle(this.#context().clock.monotonicMs());
        served = undefined;
      },
    });
  }
}
