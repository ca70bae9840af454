import { connect as connectTcp, isIP, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Clock } from '../clock.ts';
import type { RouteConfig } from '../config/config.ts';
import type { Logger } from '../log.ts';
import { UpstreamConnection } from './upstream-connection.ts';
import { UpstreamFailures } from './upstream-failures.ts';
import { UpstreamTls } from './upstream-tls.ts';
import type { UpstreamUser } from './upstream-user.ts';

/** How long one address of several may take before the next is tried (RFC 8305 §5 wants more patience than Node has). */
const ADDRESS_ATTEMPT_MS = 1_000;

/** So that a peer that is gone without a word is found out in a tunnel, too. */
const TCP_PROBE_MS = 60_000;

/**
 * The connections of one route to its upstream. An idle one is lent out before a new one is made, the last used first,
 * so that those beyond the need grow old and are closed. The name is resolved anew for each connection.
 */
export class UpstreamPool {
  readonly #route: RouteConfig;
  readonly #clock: Clock;
  readonly #failures: UpstreamFailures;
  readonly #tls: UpstreamTls | undefined;
  readonly #idle: UpstreamConnection[] = [];
  readonly #open = new Set<UpstreamConnection>();
  /** Those made under a trust or identity that has been replaced since. */
  #retired = new WeakSet<UpstreamConnection>();
  #closed = false;

  /** @throws {SidecarError} `configuration` when a TLS file of the route cannot be used. */
  constructor(route: RouteConfig, clock: Clock, log: Logger) {
    this.#route = route;
    this.#clock = clock;
    this.#failures = new UpstreamFailures(route.upstream.authority);
    if (route.upstream.protocol === 'https') {
      this.#tls = new UpstreamTls(route, { clock, log, onChange: () => this.#retireAll() });
    }
  }

  /** An idle connection, or one that is about to be made and says so to `user`. */
  acquire(user: UpstreamUser): UpstreamConnection {
    const idle = this.#idle.pop();
    if (idle === undefined) return this.acquireNew(user);
    idle.lend(user);
    return idle;
  }

  /** A connection that is about to be made. */
  acquireNew(user: UpstreamUser): UpstreamConnection {
    const connection = new UpstreamConnection(user, {
      route: this.#route,
      clock: this.#clock,
      failures: this.#failures,
      connect: (onread) => this.#connect(onread),
      onReusable: (reusable) => this.#keep(reusable),
      onClosed: (closed) => this.#forget(closed),
    });
    this.#open.add(connection);
    return connection;
  }

  /** Closes connections that carry no request, so that the next one is begun on a new connection. */
  discardIdle(): void {
    for (const connection of this.#idle.splice(0)) connection.abandon();
  }

  /** Takes the pool out of use: connections end with the requests that they carry. */
  retire(): void {
    this.#closed = true;
    this.#tls?.close();
    this.discardIdle();
  }

  /** Closes every connection, and makes none reusable any more. */
  close(): void {
    this.#closed = true;
    this.#tls?.close();
    for (const connection of this.#open) connection.abandon();
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
    if (this.#tls === undefined) return connectTcp(tcp);
    const tls = this.#tls;
    const { session } = tls;
    const socket = connectTls({
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

  #keep(connection: UpstreamConnection): void {
    if (this.#closed || this.#retired.has(connection)) connection.abandon();
    else this.#idle.push(connection);
  }

  #forget(connection: UpstreamConnection): void {
    this.#open.delete(connection);
    const index = this.#idle.indexOf(connection);
    if (index !== -1) this.#idle.splice(index, 1);
  }

  /** What was trusted, or shown, when these were made no longer is: they end with the requests that they carry. */
  #retireAll(): void {
    this.discardIdle();
    this.#retired = new WeakSet(this.#open);
  }
}
