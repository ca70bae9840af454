import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { seededRandom } from '../../scripts/simulation/random.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { KubeletSecret } from '../../src/platform/mounted/secret-layout.ts';
import { type Sidecar, startSidecar } from '../../src/sidecar/sidecar.ts';
import type { TokenSnapshot } from '../../src/token/grant-report.ts';
import type { TokenSource } from '../../src/token/token-source.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { App } from './app.ts';
import type { Certificates } from './certificates.ts';
import type { GrantKind } from './grant-kinds.ts';
import { FaultProvider } from './provider.ts';
import { Scrape } from './scrape.ts';
import { FaultUpstream } from './upstream.ts';

export interface WorldOptions {
  /** Provider and upstream speak TLS with certificates of this authority. */
  readonly certificates?: Certificates;
  readonly lifetimeSeconds?: number;
  /** Decides the jitter. */
  readonly seed?: number;
  /** Mounted at the start; the right one unless given, none for `null`. */
  readonly mountedSecret?: string | null;
  /** By what tokens are granted; client credentials unless given. */
  readonly grant?: GrantKind | undefined;
}

/** How often the app sends a request. Virtual time. */
const APP_INTERVAL_MS = 5000;

/** Loopback needs a few turns of the event loop a hop; all the parties share one. */
const TURNS_TO_SETTLE = 30;

/** The real sidecar between an app, a provider and an upstream on real sockets, in a time that the test moves. */
export class World {
  readonly clock: ManualClock;
  readonly sidecar: Sidecar;
  readonly provider: FaultProvider;
  readonly upstream: FaultUpstream;
  readonly secret: KubeletSecret;
  readonly app: App;
  readonly logLines: readonly string[];
  /** When each grant was begun, whether or not it reached the provider. Wall ms. */
  readonly #attempts = new Set<number>();

  private constructor(
    parts: Pick<World, 'clock' | 'sidecar' | 'provider' | 'upstream' | 'secret' | 'logLines'>,
  ) {
    this.clock = parts.clock;
    this.sidecar = parts.sidecar;
    this.provider = parts.provider;
    this.upstream = parts.upstream;
    this.secret = parts.secret;
    this.logLines = parts.logLines;
    this.app = new App(this.sidecar.proxyAddress, () => this.nowMs());
  }

  static async start(options: WorldOptions = {}): Promise<World> {
    const { certificates, lifetimeSeconds = 300, seed = 1, mountedSecret, grant } = options;
    let world: World | undefined;
    const clock = new ManualClock(async () => {
      await turns(TURNS_TO_SETTLE);
      while (world?.isBusy()) await turns(1);
    });
    const nowMs = () => clock.now().monotonicMs;
    const tls = certificates === undefined ? {} : { certificate: certificates.whole };
    const provider = await FaultProvider.start({ nowMs, lifetimeSeconds, ...tls });
    onTestFinished(() => provider.close());
    const upstream = await FaultUpstream.start({ nowMs, endOf: (token) => provider.endOf(token), ...tls });
    onTestFinished(() => upstream.close());
    const secret = await mountSecret({
      client_id: 'shop',
      client_secret: mountedSecret ?? provider.secret,
      ...grant?.files,
    });
    if (mountedSecret === null) await rm(join(secret.directory, '..data'));

    const { log, lines } = captureLog(clock);
    const config = await readConfig({
      listen: '127.0.0.1:0',
      admin: { listen: '127.0.0.1:0' },
      credentials: [
        {
          name: 'default',
          tokenUrl: provider.url,
          dir: secret.directory,
          ...grant?.credential,
          ...(certificates === undefined ? {} : { tls: { caFile: certificates.caFile } }),
        },
      ],
      routes: [
        {
          name: 'api',
          upstream: upstream.url,
          credential: 'default',
          ...(certificates === undefined ? {} : { tls: { caFile: certificates.caFile } }),
        },
      ],
      shutdown: { drainTimeout: '1ms' },
    });
    const sidecar = await startSidecar({ config, log, quit: () => {}, clock, random: seededRandom(seed) });
    world = new World({ clock, sidecar, provider, upstream, secret, logLines: lines });
    onTestFinished(async () => {
      const stopped = sidecar.stop();
      await clock.advance(1000);
      await stopped;
    });
    return world;
  }

  nowMs(): number {
    return this.clock.now().monotonicMs;
  }

  get token(): TokenSnapshot {
    return this.#source.snapshot();
  }

  get #source(): TokenSource {
    const [source] = this.sidecar.tokens;
    if (source === undefined) throw new Error('the sidecar has no credential');
    return source;
  }

  /** Wall ms at which each grant so far was begun, oldest first. */
  get attempts(): readonly number[] {
    return [...this.#attempts];
  }

  /** Moves time on, the app sending a request now and then, and lets the last ones be answered. */
  async live(durationMs: number): Promise<void> {
    for (let leftMs = durationMs; leftMs > 0; leftMs -= APP_INTERVAL_MS) {
      void this.app.send();
      await this.advance(Math.min(APP_INTERVAL_MS, leftMs));
    }
    while (this.app.pending > 0) await this.advance(500);
  }

  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms);
    for (const { atMs } of this.#source.grants().latest) this.#attempts.add(atMs);
  }

  /** One request of the app, and as much time as it takes. @param authorization that the app brings. */
  async ask(authorization?: string): Promise<number> {
    const answered = this.app.send(authorization);
    while (this.app.pending > 0) await this.advance(100);
    return (await answered).status;
  }

  /** Moves time on until the condition holds; returns how long that took. @throws when it takes longer than `boundMs`. */
  async until(condition: () => boolean, boundMs: number, stepMs = 250): Promise<number> {
    const beganAtMs = this.nowMs();
    while (!condition()) {
      if (this.nowMs() - beganAtMs >= boundMs) throw new Error(`not within ${boundMs} ms of virtual time`);
      await this.advance(stepMs);
    }
    return this.nowMs() - beganAtMs;
  }

  /**
   * Waits for something that the file system sets off: its notifications and reads come in real time, in which virtual
   * time goes on slowly. Returns the virtual ms it took. @throws when it takes more than the poll's 30 s.
   */
  async untilNoticed(condition: () => boolean): Promise<number> {
    const beganAtMs = this.nowMs();
    while (!condition()) {
      if (this.nowMs() - beganAtMs > 31_000) throw new Error('the file system was not looked at again');
      await new Promise((resolve) => setTimeout(resolve, 2));
      await this.advance(5);
    }
    return this.nowMs() - beganAtMs;
  }

  metrics(): Promise<Scrape> {
    return Scrape.of(this.sidecar.adminAddress);
  }

  /** Something is under way that will end without time moving on. */
  private isBusy(): boolean {
    const { grantInFlight, ready } = this.token;
    // What a grant is asked with may be read from files first, which takes real time.
    if (grantInFlight) return !this.provider.stalls || this.provider.open === 0;
    return this.app.pending > 0 && ready;
  }
}

async function readConfig(file: unknown) {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-faults-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, 'token-sidecar.json');
  await writeFile(path, JSON.stringify(file));
  return await loadConfig({ config: { key: 'the test', text: path } });
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}
