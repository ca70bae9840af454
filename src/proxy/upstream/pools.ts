import type { RouteConfig } from '../../config/config.ts';
import { SidecarError } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log/logger.ts';
import type { Clock } from '../../platform/time/clock.ts';
import { isGrpcCall, type Protocol } from '../http/messages.ts';
import type { Network } from '../io/network.ts';
import type { UpstreamObserver } from '../observer.ts';
import {
  type IncomingRequest,
  type UpstreamStream,
  type UpstreamStreams,
  type UpstreamUser,
  WithoutRequest,
} from '../streams/contract.ts';
import { offeredProtocols, offersWebSocket } from '../streams/header-rules.ts';
import type { OpenUpstreams } from './connection-budget.ts';
import { Dialer, type DialThrough } from './dialer.ts';
import { UpstreamFailures } from './failures.ts';
import { Http1Pool } from './http1/pool.ts';
import { CallerPools } from './http2/caller-pools.ts';
import { type Http1Fallback, Http2Pool } from './http2/pool.ts';
import type { ConnectGuard } from './own-listeners.ts';

/** For so long an upstream that chose HTTP/1.1 is not asked for HTTP/2 again. */
const CHOICE_HOLDS_MS = 60_000;

const H2_ALONE = ['h2'];
const H2_PREFERRED = ['h2', 'http/1.1'];

interface UpstreamPoolsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly network: Network;
  /** Counts the connections of every route. */
  readonly all: OpenUpstreams;
  readonly dialThrough?: DialThrough | undefined;
  readonly connectGuard?: ConnectGuard | undefined;
  readonly observer: UpstreamObserver;
  /** A number in [0, 1); chance when absent. */
  readonly random?: () => number;
}

/**
 * One route's connections. With `protocol: auto` HTTP/1.1 requests leave by HTTP/1.1, and those of HTTP/2 ask
 * by ALPN. If the upstream has refused HTTP/1.1, every request asks until it chooses that.
 */
export class UpstreamPools implements UpstreamStreams {
  readonly #options: UpstreamPoolsOptions;
  readonly #failures: UpstreamFailures;
  readonly #dialer: Dialer;
  readonly #http1: Http1Pool;
  /** Absent if HTTP/2 is never spoken. */
  readonly #http2: CallerPools | undefined;
  readonly #chosen: ChosenProtocol;
  readonly #overTls: boolean;
  /** Whether HTTP/1.1 is never spoken. */
  readonly #always2: boolean;
  /** Whether it has refused HTTP/1.1, and not chosen it since. */
  #refusesHttp1 = false;

  /** @throws {SidecarError} `configuration` if a TLS file of the route cannot be used. */
  constructor(route: RouteConfig, options: UpstreamPoolsOptions) {
    const { clock, log, network, all, dialThrough, connectGuard, observer, random = Math.random } = options;
    this.#options = options;
    this.#failures = new UpstreamFailures(route.upstream.authority);
    const onTlsChange = () => this.#renew();
    const dialer = new Dialer(route, {
      clock,
      log,
      network,
      onTlsChange,
      dialThrough,
      connectGuard,
      observer,
    });
    this.#dialer = dialer;
    const common = { clock, dialer, all, random };
    const { protocol } = route;
    const overTls = route.upstream.protocol === 'https';
    const onRefused = (): void => {
      this.#refusesHttp1 = true;
    };
    const asks = protocol === 'auto' && overTls;
    this.#http1 = new Http1Pool(route, { ...common, onRefused: asks ? onRefused : undefined });
    this.#overTls = overTls;
    this.#always2 = protocol === 'h2' || protocol === 'h2c';
    const chosen = new ChosenProtocol(clock, this.#always2 && !overTls ? 'h2' : undefined);
    this.#chosen = chosen;
    if (this.#always2) {
      const protocols = overTls ? H2_ALONE : undefined;
      this.#http2 = new CallerPools(
        () => new Http2Pool(route, { ...common, chosen, protocols, fallback: undefined }),
      );
    } else if (asks) {
      const protocols = H2_PREFERRED;
      const fallback = this.#fallback;
      this.#http2 = new CallerPools(() => new Http2Pool(route, { ...common, chosen, protocols, fallback }));
    }
  }

  get negotiatedProtocol(): Protocol | undefined {
    return this.#http2 === undefined ? 'http1' : this.#chosen.last;
  }

  acquire(request: IncomingRequest, user: UpstreamUser, maxIdleMs: number): UpstreamStream {
    // It needs HTTP/1.1, and the upstream may take it after all.
    const tries = this.#refusesHttp1 && offersWebSocket(offeredProtocols(request));
    const http2 = tries ? undefined : this.#http2For(request, user);
    if (http2 !== undefined) {
      if (this.#chosen.last !== 'http1') return http2.acquire(request, user, maxIdleMs);
      if (isGrpcCall(request)) {
        if (!http2.stands && this.#chosen.choseWithin(CHOICE_HOLDS_MS))
          throw this.#failures.upstreamTakesNoGrpc();
        return http2.acquire(request, user, maxIdleMs);
      }
      return this.#http1.acquireIdle(user, maxIdleMs) ?? http2.acquire(request, user, maxIdleMs);
    }
    if (request.protocol === 'h2') this.#refuseLossy(request);
    return this.#http1.acquireIdle(user, maxIdleMs) ?? this.#http1For(user);
  }

  acquireFresh(request: IncomingRequest, user: UpstreamUser): UpstreamStream {
    const http2 = this.#http2For(request, user);
    if (http2 !== undefined) return http2.acquireFresh(request, user);
    if (request.protocol === 'h2') this.#refuseLossy(request);
    return this.#http1For(user);
  }

  acquireForRetry(request: IncomingRequest, user: UpstreamUser): UpstreamStream {
    // HTTP/1.1 has no REFUSED_STREAM.
    return this.#http2?.of(user.caller).acquireForRetry(request, user) ?? this.acquireFresh(request, user);
  }

  acquireTunnel(user: UpstreamUser): UpstreamStream {
    return this.#http1For(user, true);
  }

  discardIdle({ caller }: UpstreamUser): void {
    this.#http1.discardIdle();
    this.#http2?.discardIdle(caller);
  }

  drain(): void {
    this.#dialer.close();
    this.#http1.drain();
    this.#http2?.drain();
  }

  close(): void {
    this.#dialer.close();
    this.#http1.close();
    this.#http2?.close();
  }

  /** The pool if the request leaves by HTTP/2, or asks. */
  #http2For({ protocol }: IncomingRequest, { caller }: UpstreamUser): Http2Pool | undefined {
    return this.#always2 || protocol === 'h2' || this.#refusesHttp1 ? this.#http2?.of(caller) : undefined;
  }

  get #fallback(): Http1Fallback {
    return {
      lend: (dialling, { user, request }) => {
        this.#refusesHttp1 = false;
        if (isGrpcCall(request)) throw this.#failures.upstreamTakesNoGrpc();
        return this.#http1.adopt(dialling, user);
      },
      keep: (dialling) => this.#http1.adopt(dialling, new WithoutRequest()).release(),
    };
  }

  /** @throws {SidecarError} `upstream_protocol_error` for what HTTP/1.1 cannot carry. */
  #refuseLossy(request: IncomingRequest): void {
    if (isGrpcCall(request)) throw this.#failures.routeCarriesNoGrpc(this.#overTls ? 'h2' : 'h2c');
  }

  /** HTTP/2 requests and tunnels, one connection each, can take all that there are. */
  #http1For(user: UpstreamUser, tunnel = false): UpstreamStream {
    const { all } = this.#options;
    if (all.mayOpen()) return tunnel ? this.#http1.acquireTunnel(user) : this.#http1.acquireFresh(user);
    throw new SidecarError('overloaded', `${all.most} connections to upstreams are open`);
  }

  #renew(): void {
    this.#http1.renew();
    this.#http2?.renew();
  }
}

/** What an upstream chose last, for all connections of its route. */
export class ChosenProtocol {
  readonly #clock: Clock;
  #last: Protocol | undefined;
  #atMs = Number.NEGATIVE_INFINITY;

  /** @param settled if the upstream is not asked. */
  constructor(clock: Clock, settled?: Protocol) {
    this.#clock = clock;
    this.#last = settled;
  }

  /** Undefined until it was asked. */
  get last(): Protocol | undefined {
    return this.#last;
  }

  chose(protocol: Protocol): void {
    this.#last = protocol;
    this.#atMs = this.#clock.monotonicMs();
  }

  choseWithin(ms: number): boolean {
    return this.#clock.monotonicMs() - this.#atMs < ms;
  }
}

interface ConnectedRoute {
  readonly config: RouteConfig;
  readonly upstream: UpstreamStreams;
  /** Present if a token is sent. */
  readonly bearer: object | undefined;
}

/** Connections for routes of the next configuration that connect in the same way. */
export class PoolReuse {
  readonly #pools = new Map<string, UpstreamStreams[]>();

  constructor(routes: Iterable<ConnectedRoute>) {
    for (const { config, upstream, bearer } of routes) {
      const way = wayOf(config, bearer !== undefined);
      const alike = this.#pools.get(way);
      if (alike === undefined) this.#pools.set(way, [upstream]);
      else alike.push(upstream);
    }
  }

  take(config: RouteConfig, hasToken: boolean): UpstreamStreams | undefined {
    return this.#pools.get(wayOf(config, hasToken))?.pop();
  }

  /** They close once their requests have ended. */
  retireRest(): void {
    for (const pools of this.#pools.values()) for (const pool of pools) pool.drain();
    this.#pools.clear();
  }
}

/** Includes whether a token is sent: without one, connections may not lead to the program itself. */
function wayOf(
  { name, upstream, timeouts, tls, egressProxy, protocol }: RouteConfig,
  hasToken: boolean,
): string {
  const { basePath: _, ...address } = upstream;
  return JSON.stringify([name, address, timeouts, tls, egressProxy ?? null, protocol, hasToken]);
}
