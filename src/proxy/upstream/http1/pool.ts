import type { OnReadOpts, Socket } from 'node:net';
import type { RouteConfig } from '../../../config/config.ts';
import type { Clock } from '../../../platform/time/clock.ts';
import { DenseSet } from '../../io/collections.ts';
import type { UpstreamUser } from '../../streams/contract.ts';
import { type IdleHolder, maxAgeMs, type OpenUpstreams } from '../connection-budget.ts';
import type { Dialer, Dialling } from '../dialer.ts';
import { UpstreamFailures } from '../failures.ts';
import { UpstreamConnection } from './connection.ts';
import { Http1UpstreamStream } from './stream.ts';

interface PoolOptions {
  readonly clock: Clock;
  readonly dialer: Dialer;
  /** Counts the connections of all pools. */
  readonly all: OpenUpstreams;
  /** A number in [0, 1). */
  readonly random: () => number;
}

interface Http1PoolOptions extends PoolOptions {
  /** The upstream refuses the HTTP/1.1 offered by ALPN. */
  readonly onRefused?: (() => void) | undefined;
}

const HTTP1_ALONE = ['http/1.1'];

/**
 * One route's HTTP/1.1 connections. The most recently used is lent first, so that surplus ones grow old and
 * close. Owned ones are lent to their owner alone.
 */
export class Http1Pool implements IdleHolder {
  readonly #route: RouteConfig;
  readonly #options: Http1PoolOptions;
  readonly #failures: UpstreamFailures;
  readonly #idle: Http1UpstreamStream[] = [];
  /** The oldest first. */
  readonly #owned: Http1UpstreamStream[] = [];
  readonly #open = new DenseSet<Http1UpstreamStream>();
  #closed = false;

  constructor(route: RouteConfig, options: Http1PoolOptions) {
    this.#route = route;
    this.#options = options;
    options.all.add(this);
    this.#failures = new UpstreamFailures(route.upstream.authority);
  }

  acquireIdle(user: UpstreamUser, maxIdleMs: number): Http1UpstreamStream | undefined {
    if (this.#idle.length === 0 && this.#owned.length === 0) return undefined;
    const now = this.#options.clock.now();
    const own = this.#takeOwned(user);
    if (own?.connection.lend(user, maxIdleMs, now)) return own;
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (idle.connection.lend(user, maxIdleMs, now)) return idle;
    }
    return undefined;
  }

  acquireFresh(user: UpstreamUser): Http1UpstreamStream {
    const { dialer, onRefused } = this.#options;
    const protocols = onRefused === undefined ? undefined : HTTP1_ALONE;
    return this.#make(user, (onread) => dialer.dial(onread, protocols), false);
  }

  /** Without ALPN: the app decides what is spoken. */
  acquireTunnel(user: UpstreamUser): Http1UpstreamStream {
    return this.#make(user, (onread) => this.#options.dialer.dial(onread), false);
  }

  adopt(dialling: Dialling, user: UpstreamUser): Http1UpstreamStream {
    return this.#make(user, (onread) => dialling.handToReader(onread), true);
  }

  closeOldestIdle(): boolean {
    const oldest = this.#idle[0] ?? this.#owned[0];
    oldest?.cancel();
    return oldest !== undefined;
  }

  /** A user's session would end with an owned one. */
  discardIdle(): void {
    for (const stream of this.#idle.splice(0)) stream.cancel();
  }

  drain(): void {
    this.#closed = true;
    this.#options.all.remove(this);
    this.#discardAllIdle();
  }

  close(): void {
    this.#closed = true;
    this.#options.all.remove(this);
    for (const stream of this.#open) stream.cancel();
  }

  renew(): void {
    this.#discardAllIdle();
    for (const { connection } of this.#open) connection.drain();
  }

  #make(user: UpstreamUser, connect: (onread: OnReadOpts) => Socket, stands: boolean): Http1UpstreamStream {
    const { clock, all, random, onRefused } = this.#options;
    const connection = new UpstreamConnection(user, {
      route: this.#route,
      clock,
      failures: this.#failures,
      maxAgeMs: maxAgeMs(random),
      connect,
      refusal: (made) => this.#options.dialer.refusal(made),
      stands,
      onRefused,
      onReusable: () => this.#keep(stream),
      onGone: () => this.#forget(stream),
    });
    const stream = new Http1UpstreamStream(connection);
    this.#open.add(stream);
    all.opened();
    return stream;
  }

  #discardAllIdle(): void {
    this.discardIdle();
    for (const stream of [...this.#owned]) stream.cancel();
  }

  #takeOwned(user: UpstreamUser): Http1UpstreamStream | undefined {
    if (this.#owned.length === 0) return undefined;
    const { owner } = user;
    if (owner === undefined || !owner.hasWaiting) return undefined;
    const stream = this.#owned.findLast(({ connection }) => connection.owner === owner);
    if (stream !== undefined) this.#disown(stream);
    return stream;
  }

  #keep(stream: Http1UpstreamStream): void {
    const { owner } = stream.connection;
    if (this.#closed || owner?.gone) {
      stream.cancel();
      return;
    }
    if (owner === undefined) {
      this.#idle.push(stream);
    } else {
      this.#owned.push(stream);
      owner.keep(stream);
    }
    this.#options.all.idled();
  }

  #forget(stream: Http1UpstreamStream): void {
    if (this.#open.delete(stream)) this.#options.all.closed();
    const index = this.#idle.indexOf(stream);
    if (index !== -1) this.#idle.splice(index, 1);
    this.#disown(stream);
  }

  #disown(stream: Http1UpstreamStream): void {
    const index = this.#owned.indexOf(stream);
    if (index === -1) return;
    this.#owned.splice(index, 1);
    stream.connection.owner?.release(stream);
  }
}
