import type { RouteConfig } from '../../../config/config.ts';
import { type ProxyErrorCode, SidecarError } from '../../../platform/errors.ts';
import type { Clock } from '../../../platform/time/clock.ts';
import type { IncomingRequest, UpstreamStream, UpstreamUser } from '../../streams/contract.ts';
import { type IdleHolder, maxAgeMs, type OpenUpstreams } from '../connection-budget.ts';
import { type Dialer, Dialling } from '../dialer.ts';
import { UpstreamFailures } from '../failures.ts';
import type { ChosenProtocol } from '../pools.ts';
import { Http2Connection, MAX_STREAMS } from './connection.ts';
import { type Http2StreamOptions, Http2UpstreamStream } from './stream.ts';
import { type Waiting, WaitingLine } from './waiting-line.ts';

/** Avoided because of unread answers. New connections beyond these would fill up, too. */
const MAX_SATURATED_CONNECTIONS = 3;

/** The least that RFC 9113 §6.5.2 recommends. */
const STREAMS_BEFORE_SETTINGS = 100;

export interface Http1Fallback {
  /**
   * Replaces the stream that waited.
   * @throws {SidecarError} if it cannot carry the request.
   */
  lend(dialling: Dialling, waiting: Http2UpstreamStream): UpstreamStream;
  /** Keeps it for a later request. */
  keep(dialling: Dialling): void;
}

interface Http2PoolOptions {
  readonly clock: Clock;
  readonly dialer: Dialer;
  readonly all: OpenUpstreams;
  /** A number in [0, 1). */
  readonly random: () => number;
  /** Offered by ALPN; undefined for plain TCP. */
  readonly protocols: readonly string[] | undefined;
  readonly chosen: ChosenProtocol;
  /** Without it, an upstream's choice of HTTP/1.1 is an error. */
  readonly fallback: Http1Fallback | undefined;
}

/**
 * One route's, or one caller's, HTTP/2 connections, and the requests that wait for them. The oldest with room
 * comes first.
 */
export class Http2Pool implements IdleHolder {
  readonly #route: RouteConfig;
  readonly #options: Http2PoolOptions;
  readonly #failures: UpstreamFailures;
  readonly #streamOptions: Http2StreamOptions;
  /** These may carry further requests. */
  readonly #usable = new Map<Http2Connection, number>();
  readonly #open = new Set<Http2Connection>();
  readonly #diallings = new Map<Dialling, number>();
  readonly #line: WaitingLine;
  #made = 0;
  #retired = false;
  /** Requests expected of one connection; zero if the upstream said so last. */
  #streamsEach = STREAMS_BEFORE_SETTINGS;

  constructor(route: RouteConfig, options: Http2PoolOptions) {
    this.#route = route;
    this.#options = options;
    this.#failures = new UpstreamFailures(route.upstream.authority);
    this.#streamOptions = {
      scheme: route.upstream.protocol,
      failures: this.#failures,
      timeouts: route.timeouts,
      onAbandoned: (stream) => {
        this.#line.remove(stream);
        this.#closeUnneeded();
      },
    };
    const { connectMs } = route.timeouts;
    this.#line = new WaitingLine({
      clock: options.clock,
      timeoutMs: connectMs,
      onLate: (stream) => {
        const what = this.#usable.size === 0 ? 'connection' : 'stream';
        stream.notConnected(this.#failures.tooLate(what, connectMs));
      },
      onShorter: () => this.#closeUnneeded(),
    });
    options.all.add(this);
  }

  get inUse(): boolean {
    return this.#open.size > 0 || this.#diallings.size > 0 || this.#line.length > 0;
  }

  /** Whether an open one may carry further requests, now or later. */
  get stands(): boolean {
    return this.#usable.size > 0;
  }

  /** @throws {SidecarError} `overloaded` when too many wait. */
  acquire(request: IncomingRequest, user: UpstreamUser, maxIdleMs: number): UpstreamStream {
    const stream = this.#streamFor(request, user);
    const now = this.#options.clock.now();
    for (const connection of this.#usable.keys()) {
      if (connection.free === 0) continue;
      connection.prepare(maxIdleMs, now);
      if (connection.free === 0) continue;
      // The others wait for a connection still to be made.
      if (this.#line.anyForWhatStands) break;
      stream.lend(connection);
      return stream;
    }
    return this.#wait(stream, 0);
  }

  /** @throws {SidecarError} `overloaded` when too many wait. */
  acquireFresh(request: IncomingRequest, user: UpstreamUser): UpstreamStream {
    return this.#wait(this.#streamFor(request, user), this.#comingNext);
  }

  /**
   * Makes a second connection, but no third: an upstream that refuses under load gets no connection for each
   * refusal.
   * @throws {SidecarError} `overloaded` when too many wait.
   */
  acquireForRetry(request: IncomingRequest, user: UpstreamUser): UpstreamStream {
    const anew = this.#usable.size < 2 && this.#streamsEach > 0 && this.#options.all.mayOpen();
    const stream = this.#wait(this.#streamFor(request, user), anew ? this.#comingNext : 0, true);
    // The connection that refused it may still say what it takes.
    setImmediate(() => this.#serve());
    return stream;
  }

  closeOldestIdle(): boolean {
    // The first with room is lent first, so the last has been idle longest.
    const last = [...this.#usable.keys()].findLast(({ idle }) => idle);
    last?.drain();
    return last !== undefined;
  }

  discardIdle(): void {
    for (const connection of [...this.#usable.keys()]) if (connection.idle) connection.drain();
  }

  drain(): void {
    this.#retired = true;
    this.#options.all.remove(this);
    this.#closeUnneeded();
  }

  close(): void {
    this.#retired = true;
    this.#options.all.remove(this);
    this.#line.dispose();
    for (const dialling of [...this.#diallings.keys()]) this.#drop(dialling);
    for (const connection of this.#open) connection.abandon();
  }

  renew(): void {
    for (const connection of [...this.#usable.keys()]) connection.drain();
    for (const dialling of [...this.#diallings.keys()]) this.#drop(dialling);
    this.#serve();
  }

  get #comingNext(): number {
    const [coming] = this.#diallings.values();
    return coming ?? this.#made;
  }

  get #fewAwaitReaders(): boolean {
    return countAwaitingReaders(this.#open) <= MAX_SATURATED_CONNECTIONS;
  }

  /** Otherwise unread answers could hold any number of retiring connections. */
  get #fewEndingAwaitReaders(): boolean {
    return (
      countAwaitingReaders(this.#open) - countAwaitingReaders(this.#usable.keys()) <=
      MAX_SATURATED_CONNECTIONS
    );
  }

  #streamFor(request: IncomingRequest, user: UpstreamUser): Http2UpstreamStream {
    return new Http2UpstreamStream(user, request, this.#streamOptions);
  }

  #wait(stream: Http2UpstreamStream, from: number, refused = false): Http2UpstreamStream {
    this.#line.add(stream, from, refused);
    this.#dialMore();
    if (this.#diallings.size === 0 && this.#open.size === 0) {
      this.#line.takeLast();
      throw new SidecarError('overloaded', `${this.#options.all.most} connections to upstreams are open`);
    }
    return stream;
  }

  readonly #serve = (): void => {
    this.#lendOut();
    this.#dialMore();
    this.#closeUnneeded();
  };

  #lendOut(): void {
    if (this.#line.length === 0) return;
    this.#line.lendOut(
      (waiting) => this.#roomFor(waiting),
      (stream, connection) => {
        stream.lend(connection);
        stream.user.onConnected();
      },
    );
  }

  #roomFor({ from, refused }: Waiting): Http2Connection | undefined {
    let last: Http2Connection | undefined;
    for (const [connection, number] of this.#usable) {
      if (number < from || connection.free === 0) continue;
      if (!refused || !connection.refuses) return connection;
      last ??= connection;
    }
    return last;
  }

  /** Judges room as far as it is known. */
  #dialMore(): void {
    const { all } = this.#options;
    while (this.#lacksRoom()) {
      if (all.mayOpen()) {
        this.#dial();
        continue;
      }
      all.tellOfRoom(this.#serve);
      return;
    }
  }

  #lacksRoom(): boolean {
    if (this.#line.length === 0) return false;
    // The upstream takes no request, and would say so on every connection.
    if (this.#streamsEach === 0 && this.#usable.size > 0) return false;
    if (!this.#fewEndingAwaitReaders) return false;
    return this.#line.exceeds((lowest) => this.#roomToCome(lowest));
  }

  /** Room on connections of this number and later ones. */
  #roomToCome(lowest: number): number {
    let room = 0;
    for (const number of this.#diallings.values()) if (number >= lowest) room += this.#roomOfOne();
    for (const [connection, number] of this.#usable) {
      if (number >= lowest) room += connection.free + connection.freeSoon;
    }
    return room;
  }

  /** Unlimited until known, so that no connection is made for nothing. */
  #roomOfOne(): number {
    const { last } = this.#options.chosen;
    if (last === 'http1') return 1;
    const known = last === 'h2' && this.#streamsEach > 0;
    return known ? this.#streamsEach : Number.POSITIVE_INFINITY;
  }

  #dial(): void {
    const { clock, dialer, all, protocols } = this.#options;
    const dialling = new Dialling({
      dialer,
      clock,
      failures: this.#failures,
      protocols,
      connectMs: this.#route.timeouts.connectMs,
      onStands: (_, chosen) => this.#stands(dialling, chosen),
      onFailed: (_, error) => this.#dialFailed(dialling, error),
    });
    this.#diallings.set(dialling, this.#made++);
    all.opened();
  }

  #stands(dialling: Dialling, chosen: string | undefined): void {
    const number = this.#diallings.get(dialling) as number;
    this.#diallings.delete(dialling);
    const isHttp2 = this.#options.protocols === undefined || chosen === 'h2';
    this.#options.chosen.chose(isHttp2 ? 'h2' : 'http1');
    if (isHttp2) this.#add(dialling, number);
    else {
      this.#options.all.closed();
      this.#standsByHttp1(dialling, number, chosen);
    }
    this.#serve();
  }

  #add(dialling: Dialling, number: number): void {
    const { clock, random, all } = this.#options;
    const connection = new Http2Connection(dialling, {
      route: this.#route,
      clock,
      failures: this.#failures,
      maxAgeMs: maxAgeMs(random),
      assumedStreams: this.#streamsEach,
      mayStandAside: () => this.#fewAwaitReaders,
      onFree: () => {
        this.#serve();
        if (connection.idle) all.idled();
      },
      onAllowed: (streams) => {
        this.#streamsEach = Math.min(MAX_STREAMS, streams);
      },
      onGone: () => {
        this.#usable.delete(connection);
        this.#serve();
      },
      onClosed: () => {
        this.#open.delete(connection);
        all.closed();
        this.#serve();
      },
    });
    this.#usable.set(connection, number);
    this.#open.add(connection);
  }

  #standsByHttp1(dialling: Dialling, number: number, chosen: string | undefined): void {
    const { fallback } = this.#options;
    if (fallback === undefined) {
      dialling.abandon();
      this.#failAll(this.#failures.notHttp2(chosen));
      return;
    }
    for (let stream = this.#line.takeFor(number); stream !== undefined; stream = this.#line.takeFor(number)) {
      let instead: UpstreamStream;
      try {
        instead = fallback.lend(dialling, stream);
      } catch (error) {
        stream.notConnected(error as SidecarError<ProxyErrorCode>);
        continue;
      }
      stream.replaced();
      stream.user.onConnected(instead);
      return;
    }
    fallback.keep(dialling);
  }

  #dialFailed(dialling: Dialling, error: SidecarError<ProxyErrorCode>): void {
    this.#diallings.delete(dialling);
    this.#options.all.closed();
    const last = Math.max(...this.#diallings.values(), ...this.#usable.values());
    for (const stream of this.#line.takeHopeless(last, this.#usable.size > 0)) stream.notConnected(error);
    // A new connection would most likely fail, too.
    this.#lendOut();
    this.#closeUnneeded();
  }

  #failAll(error: SidecarError<ProxyErrorCode>): void {
    for (const stream of this.#line.takeAll()) stream.notConnected(error);
    this.#closeUnneeded();
  }

  #closeUnneeded(): void {
    if (!this.#retired || this.#line.length > 0) return;
    for (const dialling of [...this.#diallings.keys()]) this.#drop(dialling);
    this.discardIdle();
  }

  #drop(dialling: Dialling): void {
    this.#diallings.delete(dialling);
    this.#options.all.closed();
    dialling.abandon();
  }
}

function countAwaitingReaders(connections: Iterable<Http2Connection>): number {
  let count = 0;
  for (const { outlet } of connections) if (outlet.awaitsReaders) count += 1;
  return count;
}
