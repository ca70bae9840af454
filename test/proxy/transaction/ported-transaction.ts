import type { OnReadOpts, Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { Registry } from '@prometheus-io/client';
import type { ProxyLimits } from '../../../src/config/config.ts';
import { type Http1Carrier, Http1DownstreamStream } from '../../../src/proxy/downstream/http1/stream.ts';
import { requestHeadReader } from '../../../src/proxy/http1/head-reader.ts';
import { CoalescingWriter } from '../../../src/proxy/io/coalescing-writer.ts';
import { Destinations } from '../../../src/proxy/routing/destinations.ts';
import { type ActiveRoute, routeMatcher } from '../../../src/proxy/routing/routes.ts';
import {
  ConnectionOwner,
  type UpstreamStreams,
  type UpstreamUser,
  WithoutRequest,
} from '../../../src/proxy/streams/contract.ts';
import { TokenPlacement } from '../../../src/proxy/streams/token-placement.ts';
import { ADMISSION, type RuleContext } from '../../../src/proxy/transaction/admission.ts';
import type { Authorizer, CallerPolicy } from '../../../src/proxy/transaction/authorizer.ts';
import { ConfigSnapshot } from '../../../src/proxy/transaction/config-snapshot.ts';
import type { ListenerContext } from '../../../src/proxy/transaction/listener-context.ts';
import { UpstreamFailures } from '../../../src/proxy/upstream/failures.ts';
import { UpstreamConnection } from '../../../src/proxy/upstream/http1/connection.ts';
import { Http1UpstreamStream } from '../../../src/proxy/upstream/http1/stream.ts';
import type { BearerSource } from '../../../src/token/bearer-source.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { testProxyMetrics } from '../../support/proxy-metrics.ts';
import { FakeBearer } from '../../wire/fake-bearer.ts';
import { type RouteOverrides, routeTo } from '../../wire/sidecar.ts';

type ProxyLoad = RuleContext['load'];

const LIMITS: ProxyLimits = {
  headerBytes: 16_384,
  headerCount: 100,
  targetBytes: 8192,
  requestBodyBytes: 0,
  replayBytes: 1024,
  maxInFlight: 1000,
  headerTimeoutMs: 7000,
  keepAliveTimeoutMs: 10_000,
  http2: { maxStreams: 100, streamWindowBytes: 65_536, connectionWindowBytes: 100 * 65_536 },
};

/** Keeps what is written to it; what it reads comes from elsewhere. */
export class Sink extends Duplex {
  text = '';
  /** While set, what is written does not leave. */
  stuck = false;
  #waiting: (() => void)[] = [];

  override _read(): void {}

  override _write(bytes: Buffer | string, _encoding: string, done: () => void): void {
    this.text += bytes.toString('latin1');
    if (this.stuck) this.#waiting.push(done);
    else done();
  }

  /** What was written leaves. */
  unblock(): void {
    this.stuck = false;
    for (const done of this.#waiting.splice(0)) done();
  }
}

/** The app's connection, of which all that happens is written down. */
export class FakeApp implements Http1Carrier {
  readonly sink = new Sink({ decodeStrings: false, highWaterMark: 64 * 1024 });
  readonly socket = this.sink as unknown as Socket;
  readonly writer = new CoalescingWriter(this.socket);
  endsWithResponse = false;
  held = false;
  ended: { last: boolean; timeoutMs: number } | undefined;
  cutBy: 'end' | 'reset' | undefined;
  #owner: ConnectionOwner | undefined;

  /** What was flushed to it. */
  get text(): string {
    return this.sink.text;
  }
  ownerFor(caller: string | undefined): ConnectionOwner {
    this.#owner ??= new ConnectionOwner(caller);
    return this.#owner;
  }
  pause(): void {
    this.held = true;
  }
  resume(): void {
    this.held = false;
  }
  endResponse(_stream: Http1DownstreamStream, last: boolean, timeoutMs: number): void {
    this.ended = { last, timeoutMs };
    this.writer.flush();
  }
  cut(byReset: boolean): void {
    this.cutBy = byReset ? 'reset' : 'end';
  }
  takeOver(): undefined {}
  handOff(): void {}
  onFree(): void {}
}

/** A connection to the upstream, beneath which is no network. */
interface FakeUpstream {
  readonly connection: UpstreamConnection;
  /** What was sent on it. */
  readonly sent: string;
  readonly sink: Sink;
  /** Has the upstream say this. */
  bring(text: string): void;
}

export interface Ports {
  readonly limits?: Partial<ProxyLimits>;
  readonly route?: RouteOverrides;
  readonly bearer?: FakeBearer;
  /** How connections are when the pool lends them: reused, just made, or still being made. */
  readonly lent?: 'reused' | 'new' | 'coming';
  readonly phase?: ProxyLoad['phase'];
  readonly inFlight?: number;
  /** Who lends streams, in place of connections beneath which is no network. */
  readonly streams?: UpstreamStreams;
  /** Who finds out who asks, where not everybody may. */
  readonly authorizer?: Authorizer;
  readonly callers?: CallerPolicy;
}

/** What requests are served with where there is no network and the clock stands still. */
export function createPorts(ports: Ports = {}) {
  const clock = new ManualClock();
  const registry = new Registry();
  const metrics = testProxyMetrics(registry);
  const { log, lines } = captureLog();
  const config = routeTo({ address: { host: 'up.test', port: 80 } }, ports.route);
  const upstreams: FakeUpstream[] = [];
  /** What the pool was asked for: how long idle a connection may have been, or a new one. */
  const asked: (number | 'new')[] = [];
  let discarded = 0;

  function lend(user: UpstreamUser): UpstreamConnection {
    const sink = new Sink({ decodeStrings: false });
    let onread: OnReadOpts | undefined;
    const connection = new UpstreamConnection(user, {
      route: config,
      clock,
      failures: new UpstreamFailures('up.test'),
      maxAgeMs: 1e9,
      connect(options) {
        onread = options;
        return sink as unknown as Socket;
      },
      onReusable: () => {},
      onGone: () => {},
    });
    upstreams.push({
      connection,
      sink,
      get sent() {
        return sink.text;
      },
      bring(text) {
        const { buffer, callback } = onread as OnReadOpts;
        const bytes = Buffer.from(text, 'latin1');
        bytes.copy(buffer as Buffer);
        callback(bytes.length, buffer as Buffer);
      },
    });
    return connection;
  }

  /** Of a request that has ended, so that the connection stands. */
  function stand(user: UpstreamUser, reused: boolean): UpstreamConnection {
    const connection = lend(new WithoutRequest());
    connection.socket.emit('connect');
    if (reused) {
      connection.begin('GET');
      connection.requestSent(clock.monotonicMs());
      upstreams.at(-1)?.bring('HTTP/1.1 204 No Content\r\n\r\n');
    } else connection.giveBack();
    connection.lend(user, Number.POSITIVE_INFINITY, clock.now());
    return connection;
  }

  const upstreamStreams = {
    acquire(_request: unknown, user: UpstreamUser, maxIdleMs: number) {
      asked.push(maxIdleMs);
      const coming = ports.lent === 'coming';
      return new Http1UpstreamStream(coming ? lend(user) : stand(user, ports.lent !== 'new'));
    },
    acquireFresh(_request: unknown, user: UpstreamUser) {
      asked.push('new');
      return new Http1UpstreamStream(lend(user));
    },
    discardIdle() {
      discarded++;
    },
    close() {},
  } as unknown as UpstreamStreams;

  const bearer = ports.bearer ?? new FakeBearer();
  const route: ActiveRoute = {
    config,
    matcher: routeMatcher(config.match),
    upstream: ports.streams ?? upstreamStreams,
    bearer: bearer as BearerSource,
    placement: config.inject && new TokenPlacement(config.inject),
    observer: metrics.forRoute('api'),
    reportRefusal() {},
  };
  const load: ProxyLoad = {
    inFlight: ports.inFlight ?? 0,
    phase: ports.phase ?? 'serving',
  };
  const limits = { ...LIMITS, ...ports.limits };
  let snapshot = new ConfigSnapshot({
    record: () => undefined,
    callers: ports.callers ?? [],
    destinations: new Destinations({
      routes: [route],
      forwardProxy: undefined,
      captured: undefined,
      redirected: undefined,
      ownNames: undefined,
    }),
    admission: ADMISSION,
    limits,
  });
  const context: ListenerContext = {
    snapshot: () => snapshot,
    clock,
    log,
    instanceId: 'me',
    noRoute: metrics.forRoute('none'),
    load,
    ...(ports.authorizer === undefined ? {} : { authorizer: ports.authorizer }),
  };
  return {
    context,
    /** Has requests served with these destinations from now on. */
    replaceDestinations(destinations: Destinations) {
      snapshot = new ConfigSnapshot({ ...snapshot, destinations });
    },
    clock,
    load,
    lines,
    asked,
    upstreams,
    bearer,
    /** How often the pool's idle connections were discarded. */
    discarded: () => discarded,
    upstream(index = 0): FakeUpstream {
      const upstream = upstreams[index];
      if (upstream === undefined) throw new Error(`no connection ${index} was asked for`);
      return upstream;
    },
    /** Of a series, without its prefix: `requests_total{route="api",method="GET",code="200"}`. */
    async metric(series: string): Promise<number> {
      const line = (await registry.metrics())
        .split('\n')
        .find((candidate) => candidate.startsWith(`token_sidecar_proxy_${series} `));
      return line === undefined ? 0 : Number(line.split(' ').at(-1));
    },
  };
}

/** Serves one request between the app's port and the upstream's. */
export function serve(request: string, ports: Ports = {}) {
  const created = createPorts(ports);
  const { context, clock } = created;
  const app = new FakeApp();
  const head = requestHeadReader(context.snapshot().limits).read(Buffer.from(request, 'latin1'), 0);
  if (head === undefined) throw new Error('the test gave no whole head');
  const stream = new Http1DownstreamStream(app, context, head, clock.monotonicMs());
  const { transaction } = stream;
  transaction.begin();
  // As after every read.
  transaction.flushRequest();
  return {
    ...created,
    app,
    stream,
    transaction,
    /** The app sends more of its body; `end` says that this was all. */
    send(text: string, { end = false, trailers = [] as string[] } = {}) {
      if (text.length > 0) transaction.takeBody(Buffer.from(text, 'latin1'));
      if (end) stream.endBody(trailers);
      transaction.flushRequest();
    },
  };
}
