import { type OnReadOpts, Socket } from 'node:net';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import type { RouteConfig } from '../../config/config.ts';
import type { ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log/logger.ts';
import { serverNameOf } from '../../platform/net/address.ts';
import type { Clock } from '../../platform/time/clock.ts';
import { Deadline } from '../io/deadline.ts';
import type { Network } from '../io/network.ts';
import { sharedRead, type TakeBytes } from '../io/sockets.ts';
import type { UpstreamObserver } from '../observer.ts';
import { asProxyError } from '../proxy-error.ts';
import type { EgressDial } from './egress-dial.ts';
import type { UpstreamFailures } from './failures.ts';
import type { ConnectGuard } from './own-listeners.ts';
import { UpstreamTls } from './tls.ts';

/** Notices vanished peers, in a tunnel too. */
const TCP_PROBE_MS = 60_000;

interface DialerOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly network: Network;
  /** Existing connections' trust or identity is no longer valid. */
  onTlsChange(): void;
  readonly dialThrough?: DialThrough | undefined;
  /** Where its connections may not lead. */
  readonly connectGuard?: ConnectGuard | undefined;
  readonly observer: UpstreamObserver;
}

export type DialThrough = (dial: EgressDial) => TLSSocket | undefined;

/** Makes the connections of one route. Each looks up the name anew; simultaneous lookups are shared. */
export class Dialer {
  readonly #route: RouteConfig;
  readonly #network: Network;
  readonly #clock: Clock;
  readonly #dialThrough: DialThrough | undefined;
  readonly #tls: UpstreamTls | undefined;
  readonly #connectGuard: ConnectGuard | undefined;
  readonly #observer: UpstreamObserver;
  readonly #log: Logger;

  /** @throws {SidecarError} `configuration` if a TLS file of the route cannot be used. */
  constructor(route: RouteConfig, options: DialerOptions) {
    const { clock, log, network, onTlsChange, dialThrough, connectGuard, observer } = options;
    this.#route = route;
    this.#connectGuard = connectGuard;
    this.#observer = observer;
    this.#log = log;
    this.#clock = clock;
    this.#dialThrough = dialThrough;
    this.#network = network;
    if (route.upstream.protocol === 'https') {
      this.#tls = new UpstreamTls(route, { clock, log, onChange: onTlsChange, observer });
    }
  }

  /**
   * Emits `connect`, over TLS then `secureConnect`.
   * @param protocols offered by ALPN (RFC 7301), the preferred first.
   */
  dial(onread: OnReadOpts, protocols?: readonly string[]): Socket {
    const { upstream, timeouts } = this.#route;
    const tcp = {
      host: upstream.host,
      port: upstream.port,
      party: upstream.party,
      onread,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: TCP_PROBE_MS,
      // In a tunnel each direction ends by itself.
      allowHalfOpen: true,
      // Leaves time for a second address.
      autoSelectFamilyAttemptTimeout: Math.ceil(timeouts.connectMs / 2),
    };
    if (this.#tls === undefined) {
      const socket = this.#network.connectTcp(tcp);
      this.#watch(socket);
      return socket;
    }
    const tls = this.#tls;
    const { session } = tls;
    const options: ConnectionOptions = {
      secureContext: tls.context,
      servername: serverNameOf(this.#route.tls.serverName ?? upstream.host),
      // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot send tokens to strangers.
      rejectUnauthorized: true,
      ...(session === undefined ? {} : { session }),
      ...(protocols === undefined ? {} : { ALPNProtocols: [...protocols] }),
    };
    const socket = this.#secured(tcp, options);
    const { context } = tls;
    socket.on('session', (ticket) => tls.remember(ticket, context));
    this.#watch(socket);
    socket.once('secureConnect', () => this.#handshakeDone(socket));
    return socket;
  }

  #secured(tcp: EgressDial['tcp'], tls: ConnectionOptions): TLSSocket {
    const proxy = this.#route.egressProxy;
    const network = this.#network;
    if (proxy !== undefined && this.#dialThrough !== undefined) {
      const { connectMs } = this.#route.timeouts;
      const through = this.#dialThrough({ proxy, tcp, tls, connectMs, clock: this.#clock, network });
      if (through !== undefined) return through;
    }
    return network.connectTls({ ...tcp, ...tls });
  }

  #watch(socket: Socket): void {
    socket.once('connect', () => {
      this.#observer.connectionOpened();
      this.#log.debug(this.#connection(), 'connection to the upstream made');
    });
    socket.once('close', () => this.#log.debug(this.#connection(), 'connection to the upstream closed'));
  }

  #handshakeDone(socket: TLSSocket): void {
    const resumed = socket.isSessionReused();
    this.#observer.connectionSecured(resumed);
    const facts = { ...this.#connection(), tls: socket.getProtocol(), alpn: socket.alpnProtocol, resumed };
    this.#log.debug(facts, 'TLS with the upstream agreed');
  }

  #connection(): { readonly route: string; readonly upstream: string } {
    return { route: this.#route.name, upstream: this.#route.upstream.authority };
  }

  refusal(made: Socket): SidecarError<ProxyErrorCode> | undefined {
    return this.#connectGuard?.refusal(made);
  }

  close(): void {
    this.#tls?.close();
  }
}

interface DiallingOptions {
  readonly dialer: Dialer;
  readonly clock: Clock;
  readonly failures: UpstreamFailures;
  /** Offered by ALPN; undefined for plain TCP. */
  readonly protocols: readonly string[] | undefined;
  /** Name resolution, TCP and TLS together. */
  readonly connectMs: number;
  /**
   * The callee takes the connection over.
   * @param chosen by ALPN.
   */
  onStands(dialling: Dialling, chosen: string | undefined): void;
  onFailed(dialling: Dialling, error: SidecarError<ProxyErrorCode>): void;
}

/** A connection that is being made, before its protocol is known. */
export class Dialling {
  readonly socket: Socket;
  readonly #options: DiallingOptions;
  readonly #deadline: Deadline;
  #phase: 'connecting' | 'securing' | 'over' = 'connecting';
  #take: TakeBytes = () => this.#fail(this.#options.failures.unasked());

  constructor(options: DiallingOptions) {
    const { clock, dialer, failures, protocols, connectMs } = options;
    this.#options = options;
    this.#deadline = new Deadline(clock, () => this.#fail(failures.tooLate('connection', connectMs)));
    this.socket = begun(() =>
      dialer.dial(
        sharedRead((chunk) => this.#take(chunk)),
        protocols,
      ),
    );
    this.socket.once('connect', this.#onConnect);
    this.socket.once('secureConnect', this.#onStands);
    this.socket.on('error', this.#onError);
    this.socket.on('close', this.#onClose);
    // A deadline that passes at once needs a socket to close.
    this.#deadline.set(clock.monotonicMs() + connectMs);
  }

  /** From here on `take` gets the bytes and watches over the connection. */
  handTo(take: TakeBytes): Socket {
    this.#let();
    this.#take = take;
    return this.socket;
  }

  handToReader({ callback }: OnReadOpts): Socket {
    return this.handTo((chunk) => {
      callback(chunk.length, chunk);
    });
  }

  abandon(): void {
    if (this.#phase === 'over') return;
    this.#let();
    this.socket.on('error', () => this.socket.destroy());
    this.socket.destroy();
  }

  readonly #onConnect = (): void => {
    // Before anything is sent: this program would ask itself in turn.
    const refusal = this.#options.dialer.refusal(this.socket);
    if (refusal !== undefined) this.#fail(refusal);
    else if (this.#options.protocols === undefined) this.#onStands();
    else this.#phase = 'securing';
  };

  readonly #onStands = (): void => {
    if (this.#phase === 'over') return;
    const { alpnProtocol: chosen } = this.socket as Partial<TLSSocket>;
    this.#options.onStands(this, typeof chosen === 'string' ? chosen : undefined);
  };

  readonly #onError = (error: Error): void => {
    this.#fail(this.#options.failures.of(error, this.#phase));
  };

  readonly #onClose = (): void => {
    this.#fail(this.#options.failures.closed());
  };

  #fail(error: SidecarError<ProxyErrorCode>): void {
    if (this.#phase === 'over') return;
    this.abandon();
    this.#options.onFailed(this, error);
  }

  #let(): void {
    this.#phase = 'over';
    this.#deadline.dispose();
    this.socket.off('connect', this.#onConnect);
    this.socket.off('secureConnect', this.#onStands);
    this.socket.off('error', this.#onError);
    this.socket.off('close', this.#onClose);
  }
}

/** Node throws at once for a rejected argument; callers expect failures later. */
function begun(dial: () => Socket): Socket {
  try {
    return dial();
  } catch (error) {
    return new Socket().destroy(asProxyError(error));
  }
}
