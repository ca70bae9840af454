import type { RouteConfig } from '../../src/config/config.ts';
import type { CertificateMetrics } from '../../src/platform/x509/certificate-metrics.ts';
import type { DataPath } from '../../src/proxy/data-path.ts';
import type { ProxyMetrics } from '../../src/proxy/metrics.ts';
import type { Product } from './data-path.ts';
import { Model } from './model.ts';
import { ModelBearer, TOKEN_MARK } from './model-bearer.ts';
import { ModelClock } from './model-clock.ts';
import { ticks } from './ticks.ts';
import { Violation } from './violation.ts';
import { type Action, BOUNDS, REPLAY_BYTES, type Walk } from './walk.ts';
import type { World } from './world.ts';

/** Longer than every bound of the data path. */
const LONG_MS = 150_000;

/** The routes of walks trust what the world made, not files. */
const NO_CERTIFICATES: CertificateMetrics = { inUse: () => {} };

/** No honest walk fires more of them in its longest wait. */
const MAX_TIMERS = 2000;

/** As often the peers answer whatever is asked, after the walk. */
const MAX_ROUNDS = 60;

/**
 * Takes the walk, then lets everything come to its end: what is asked is answered, then everybody leaves, then the data
 * path is drained. Resolves to what was wrong first, if anything was.
 */
export async function runWalk(
  walk: Walk,
  world: World,
  product: Product,
  trace: (line: string) => void = () => {},
): Promise<Error | undefined> {
  const run = await WalkRun.start(walk, world, product, trace);
  return await run.take();
}

class WalkRun {
  readonly #walk: Walk;
  readonly #world: World;
  readonly #clock: ModelClock;
  readonly #bearer: ModelBearer;
  readonly #proxy: DataPath;
  readonly #metrics: ProxyMetrics;
  readonly #model: Model;
  readonly #log: readonly string[];
  readonly #trace: (line: string) => void;
  #drained = false;

  static async start(
    walk: Walk,
    world: World,
    product: Product,
    trace: (line: string) => void,
  ): Promise<WalkRun> {
    const clock = new ModelClock();
    const refuse = () => new product.TokenUnavailable('no token is to be had in this walk', 1000);
    const bearer = new ModelBearer(clock, walk.renewal === 'at once', refuse);
    const log: string[] = [];
    const metrics = product.createProxyMetrics(new product.Registry(), NO_CERTIFICATES);
    const proxy = await product.startProxy({
      listen: { host: '127.0.0.1', port: 0 },
      routes: [routeTo(walk, world)],
      limits: {
        headerBytes: 16_384,
        headerCount: 100,
        targetBytes: 8192,
        requestBodyBytes: 0,
        replayBytes: REPLAY_BYTES,
        maxInFlight: 1000,
        headerTimeoutMs: BOUNDS.headerMs,
        keepAliveTimeoutMs: BOUNDS.keepAliveMs,
        http2: { maxStreams: 100, streamWindowBytes: 65_536, connectionWindowBytes: 65_536 },
      },
      bearers: new Map([['default', bearer]]),
      metrics,
      clock,
      log: product.createLogger('warn', {
        write: (line) => {
          log.push(line);
          trace(line);
        },
      }),
      network: world.network,
      instanceId: 'model-instance',
    });
    return new WalkRun(walk, world, { clock, bearer, proxy, metrics, log, trace });
  }

  private constructor(
    walk: Walk,
    world: World,
    parts: {
      clock: ModelClock;
      bearer: ModelBearer;
      proxy: DataPath;
      metrics: ProxyMetrics;
      log: readonly string[];
      trace: (line: string) => void;
    },
  ) {
    this.#walk = walk;
    this.#world = world;
    this.#clock = parts.clock;
    this.#bearer = parts.bearer;
    this.#proxy = parts.proxy;
    this.#metrics = parts.metrics;
    this.#log = parts.log;
    this.#trace = parts.trace;
    this.#model = new Model(walk, world, parts.bearer, parts.proxy.address, parts.trace);
  }

  async take(): Promise<Error | undefined> {
    try {
      for (const step of this.#walk.steps) {
        this.#trace(`· ${JSON.stringify(step)}`);
        if (!(await this.#act(step))) continue;
        if (step.pace === 'settled') await this.#settle();
        if (step.pace === 'next turn') await this.#world.turn();
        this.#check();
      }
      await this.#answerAll();
      await this.#leaveAll();
    } catch (error) {
      return this.#model.violation ?? (error instanceof Error ? error : new Error(String(error)));
    } finally {
      await this.#tidy();
    }
    return undefined;
  }

  async #act(action: Action): Promise<boolean> {
    switch (action.do) {
      case 'time passes':
        await this.#pass(action.ms);
        return true;
      case 'process is suspended':
        await this.#suspend(action);
        return true;
      case 'drain begins':
        this.#drain();
        return true;
      case 'token ends':
      case 'token is granted':
      case 'token is refused':
        this.#model.act(action);
        // Whoever waits for it hears of it before the clocks can move; no turn goes by in which no socket is read.
        await ticks();
        return true;
      default:
        return this.#model.act(action);
    }
  }

  /** Both clocks go on together, and whatever a moment brings has happened before the next. */
  async #pass(ms: number): Promise<void> {
    await this.#settle();
    let rest = ms;
    let fired = 0;
    for (let next = this.#clock.nextWithin(rest); next !== undefined; next = this.#clock.nextWithin(rest)) {
      this.#clock.jump(next, next);
      this.#model.moved(next);
      rest -= next;
      fired += 1;
      if (fired > MAX_TIMERS) throw new Violation(`timers go on without end: ${MAX_TIMERS} in ${ms} ms`);
      this.#clock.fireDue();
      await this.#settle();
      this.#check();
    }
    this.#clock.jump(rest, rest);
    this.#model.moved(rest);
  }

  async #settle(): Promise<void> {
    await this.#world.settle();
    this.#model.settled();
  }

  async #suspend({ monotonicMs, wallMs, timersFirst }: Extract<Action, { do: 'process is suspended' }>) {
    this.#model.beforeJump();
    this.#clock.jump(monotonicMs, wallMs);
    this.#model.moved(Math.max(monotonicMs, wallMs));
    if (!timersFirst) await this.#world.turn();
    this.#clock.fireDue();
    if (timersFirst) await this.#world.turn();
  }

  #drain(): void {
    this.#model.draining = true;
    void this.#proxy.drain(LONG_MS / 2).then(() => {
      this.#drained = true;
    });
  }

  /** From here on nobody does any harm: everything that was asked gets its answer. */
  async #answerAll(): Promise<void> {
    this.#trace('· the walk is over: everything is answered');
    const { apps, upstreams } = this.#model;
    this.#world.connecting = 'made';
    this.#bearer.answerAtOnce();
    for (let round = 0; round < MAX_ROUNDS; round++) {
      for (const app of apps) {
        if (!app.isOpen) continue;
        app.resume();
        if (app.isAmidst) app.goOn();
      }
      for (const upstream of upstreams) if (upstream.state !== 'gone') upstream.finish();
      await this.#settle();
      this.#check();
      if (apps.every(({ due }) => due.length === 0)) {
        this.#checkForsaken();
        return;
      }
    }
    for (const app of apps) {
      const [asked] = app.due;
      if (asked !== undefined) throw new Violation(`${asked} was never answered`);
    }
  }

  /** Nothing is asked of an upstream that nobody wants any more. */
  #checkForsaken(): void {
    for (const { streams, id } of this.#model.upstreams) {
      const [asked] = streams?.forsaken ?? [];
      if (asked !== undefined) throw new Violation(`${asked} is open on connection ${id} after its end`);
    }
  }

  async #leaveAll(): Promise<void> {
    this.#trace('· everybody leaves');
    for (const app of this.#model.apps) if (app.isOpen) app.leave('closes');
    await this.#pass(LONG_MS);
    this.#check();
    const inFlight = [...this.#metrics.stats().values()].reduce((sum, tally) => sum + tally.inFlight, 0);
    if (inFlight !== 0) throw new Violation(`${inFlight} requests are in flight after all apps have left`);
    if (this.#world.openUpstream !== 0) {
      throw new Violation(
        `${this.#world.openUpstream} upstream connections are open long after their last use`,
      );
    }
    this.#drain();
    await this.#pass(LONG_MS);
    if (!this.#drained) throw new Violation('the data path is not drained after all apps have left');
    const { pendingTimers } = this.#clock;
    if (pendingTimers !== 0) throw new Violation(`${pendingTimers} timers are set after the end`);
  }

  #check(): void {
    if (this.#model.violation !== undefined) throw this.#model.violation;
    if (this.#log.some((line) => line.includes(TOKEN_MARK))) throw new Violation('a token is in the log');
  }

  /** After a violation, too, nothing of this walk may reach the next. */
  async #tidy(): Promise<void> {
    await this.#world.close();
    if (this.#drained) return;
    void this.#proxy.drain(0);
    for (let turn = 0; turn < 20 && !this.#drained; turn++) {
      this.#clock.jump(LONG_MS, LONG_MS);
      this.#clock.fireDue();
      await this.#world.turn();
    }
  }
}

function routeTo(walk: Walk, { upstreamAddress, caFile }: World): RouteConfig {
  const { transport } = walk;
  const { host, port } = upstreamAddress;
  return {
    name: 'api',
    match: { pathPrefix: '/' },
    upstream: {
      protocol: transport === 'tls' ? 'https' : 'http',
      host,
      port,
      authority: `${host}:${port}`,
      basePath: '',
    },
    stripPrefix: false,
    credential: 'default',
    existingAuthorization: 'replace',
    whenTokenUnavailable: 'fail',
    protocol: spokenBy(walk),
    retryOn401: true,
    timeouts: { connectMs: BOUNDS.connectMs, responseMs: BOUNDS.responseMs, idleMs: BOUNDS.idleMs },
    tls: transport === 'tls' && caFile !== undefined ? { caFile } : {},
  };
}

/** HTTP/2 is said where it has to be, and found out where that can be. */
function spokenBy({ app, upstream, transport }: Walk): RouteConfig['protocol'] {
  if (upstream === 'http/1.1') return 'auto';
  if (transport === 'plain') return 'h2c';
  return app === 'h2' ? 'auto' : 'h2';
}
