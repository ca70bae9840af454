import { isIP, type OnReadOpts, type Socket } from 'node:net';
import type { Clock } from '../../clock.ts';
import type { RouteConfig } from '../../config/config.ts';
import type { Logger } from '../../log/logger.ts';
import type { Network } from '../io/network.ts';
import type { UpstreamStreams, UpstreamUser } from '../streams/upstream-stream.ts';
import { UpstreamConnection } from './connection.ts';
import { UpstreamFailures } from './failures.ts';
import { Http1UpstreamStream } from './http1-stream.ts';
import type { IdleHolder, OpenUpstreams } from './open-upstreams.ts';
import { UpstreamTls } from './tls.ts';

/** How long one address of several may take before the next is tried (RFC 8305 §5 wants more patience than Node has). */
const ADDRESS_ATTEMPT_MS = 1_000;

/**
 * For how long requests are begun on a connection, so that a change of the name's addresses, or of who listens there,
 * reaches every connection. Up to a fifth less, at random: those made together do not end together.
 */
const MAX_AGE_MS = 5 * 60_000;
const MAX_AGE_JITTER = 0.2;

/** So that a peer that is gone without a word is found out in a tunnel, too. */
const TCP_PROBE_MS = 60_000;

export interface UpstreamPoolOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly network: Network;
  /** The connections of every pool, this one's among them. */
  readonly all: OpenUpstreams;
}

/**
 * The connections of one route to its upstream. An idle one is lent out before a new one is made, the last used first,
 * so that those beyond the need grow old and are closed. The name is resolved anew for each connection.
 */
export class UpstreamPool implements UpstreamStreams, IdleHolder {
  readonly #route: RouteConfig;
  readonly #clock: Clock;
  readonly #network: Network;
  readonly #all: OpenUpstreams;
  readonly #failures: UpstreamFailures;
  readonly #tls: UpstreamTls | undefined;
  readonly #idle: Http1UpstreamStream[] = [];
  readonly #open = new Set<Http1UpstreamStream>();
  readonly #random: () => number;
  #closed = false;

  /**
   * @param random a number in [0, 1).
   * @throws {SidecarError} `configuration` when a TLS file of the route cannot be used.
   */
  constructor(
    route: RouteConfig,
    { clock, log, network, all }: UpstreamPoolOptions,
    random: () => number = Math.random,
  ) {
    this.#random = random;
    this.#route = route;
    this.#clock = clock;
    this.#network = network;
    this.#all = all;
    all.add(this);
    this.#failures = new UpstreamFailures(route.upstream.authority);
    if (route.upstream.protocol === 'https') {
      this.#tls = new UpstreamTls(route, { clock, log, onChange: () => this.#retireAll() });
    }
  }

  acquire(user: UpstreamUser, trustMs: number): Http1UpstreamStream {
    if (this.#idle.length === 0) return this.acquireNew(user);
    const now = this.#clock.now();
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (idle.connection.lend(user, trustMs, now)) return idle;
    }
    return this.acquireNew(user);
  }

  acquireNew(user: UpstreamUser): Http1UpstreamStream {
    const connection = new UpstreamConnection(user, {
      route: this.#route,
      clock: this.#clock,
      failures: this.#failures,
      maxAgeMs: MAX_AGE_MS * (1 - MAX_AGE_JITTER * this.#random()),
      connect: (onread) => this.#connect(onread),
      onReusable: () => this.#keep(stream),
      onGone: () => this.#forget(stream),
    });
    const stream = new Http1UpstreamStream(connection);
    this.#open.add(stream);
    this.#all.opened();
    return stream;
  }

  /** As in `IdleHolder`. */
  closeOldestIdle(): boolean {
    const [oldest] = this.#idle;
    oldest?.abandon();
    return oldest !== undefined;
  }

  discardIdle(): void {
    for (const stream of this.#idle.splice(0)) stream.abandon();
  }

  retire(): void {
    this.#closed = true;
    this.#all.remove(this);
    this.#tls?.close();
    this.discardIdle();
  }

  close(): void {
    this.#closed = true;
    this.#all.remove(this);
    this.#tls?.close();
    for (const stream of this.#open) stream.abandon();
  }

  #connect(onread: OnReadOpts): Socket {
    const { upstream, timeouts } = this.#route;
    const tcp = {
      host: upstream.host,
      port: upstream.port,
      onread,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: TCP_PROBE_MS,
      // Each direction ends by itself, in a tunnel; elsewhere the end of one is acted upon.
      allowHalfOpen: true,
      autoSelectFamilyAttemptTimeout: Math.min(ADDRESS_ATTEMPT_MS, Math.ceil(timeouts.connectMs / 2)),
    };
    if (this.#tls === undefined) return this.#network.connectTcp(tcp);
    const tls = this.#tls;
    const { session } = tls;
    const socket = this.#network.connectTls({
      ...tcp,
      secureContext: tls.context,
      // An address is no server name (RFC 6066 §3); the certificate is checked against it all the same.
      servername: this.#route.tls.serverName ?? (isIP(upstream.host) === 0 ? upstream.host : ''),
      // Said aloud, so that NODE_TLS_REJECT_UNAUTHORIZED cannot send tokens to strangers.
      rejectUnauthorized: true,
      ...(session === undefined ? {} : { session }),
    });
    const { context } = tls;
    socket.on('session', (ticket) => tls.remember(ticket, context));
    return socket;
  }

  #keep(stream: Http1UpstreamStream): void {
    if (this.#closed) stream.abandon();
    else this.#idle.push(stream);
  }

  #forget(stream: Http1UpstreamStream): void {
    if (this.#open.delete(stream)) this.#all.closed();
    const index = this.#idle.indexOf(stream);
    if (index !== -1) this.#idle.splice(index, 1);
  }

  /** What was trusted, or shown, when these were made no longer is: they end with the requests that they carry. */
  #retireAll(): void {
    this.discardIdle();
    for (const { connection } of this.#open) connection.retire();
  }
}
