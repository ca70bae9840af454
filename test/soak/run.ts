import { setTimeout as delay } from 'node:timers/promises';
import { createAppClient } from './app-client.ts';
import type { SoakConfiguration } from './configuration.ts';
import { changeEvenly } from './evenly.ts';
import { runLoad, WORKERS } from './load.ts';
import { MemoryRecord } from './memory-record.ts';
import type { SoakOptions } from './options.ts';
import { pause } from './pause.ts';
import type { ProtectedApi } from './protected-api.ts';
import type { Provider } from './provider.ts';
import { reloading } from './reloads.ts';
import { rotating } from './rotations.ts';
import { readGrants, readStatus, successes } from './sidecar-figures.ts';
import type { SidecarProcess } from './sidecar-process.ts';
import { Tally } from './tally.ts';
import { megabytes, type SoakFigures } from './verdict.ts';

export interface SoakParts {
  readonly provider: Provider;
  readonly api: ProtectedApi;
  readonly sidecar: SidecarProcess;
  readonly configuration: SoakConfiguration;
}

/** A run that goes wrong altogether is not worth its length. */
const MAX_FAILURES = 100;

/** An abort takes a moment to reach the API. */
const SETTLE_BOUND_MS = 10_000;
const SETTLE_INTERVAL_MS = 50;

/** Beyond the sidecar's own bound for draining. */
const EXIT_BOUND_MS = 40_000;

/** Loads the sidecar until the time is over or `stop` aborts, then ends it, and returns what was measured. */
export async function run(
  options: SoakOptions,
  parts: SoakParts,
  print: (line: string) => void,
  stop: AbortController,
): Promise<SoakFigures> {
  const { durationMs } = options;
  const { provider, api, sidecar, configuration } = parts;
  const app = createAppClient(sidecar.proxy, WORKERS);
  const memory = new MemoryRecord();
  const tally = new Tally((failed) => {
    if (failed >= MAX_FAILURES) stop.abort();
  });
  let ended = false;
  void sidecar.exited.then(() => {
    ended = true;
    stop.abort();
  });

  const startedAt = performance.now();
  const elapsedMs = (): number => performance.now() - startedAt;
  let endedEarly = true;
  const timer = setTimeout(() => {
    endedEarly = false;
    stop.abort();
  }, durationMs);
  const over = new AbortController();
  const load = runLoad(app, tally, options.rate, stop.signal).then((shortExchanges) => {
    over.abort();
    return { loadMs: elapsedMs(), shortExchanges };
  });
  const sample = () =>
    tally.measure('status of the sidecar', async () => {
      const { anonymousBytes } = await readStatus(sidecar.admin);
      if (anonymousBytes !== undefined) memory.add(elapsedMs(), anonymousBytes);
    });
  const tell = async () => {
    const used = memory.latest === undefined ? '' : `, sidecar ${megabytes(memory.latest)} MB`;
    const at = `${Math.round(elapsedMs() / 1000)} s`.padStart(8);
    print(`${at}  ${tally.done} done, ${tally.failed} failed, ${api.tokensSeen()} tokens${used}`);
  };
  await sample();
  const [rotations, reloads, { loadMs, shortExchanges }] = await Promise.all([
    changeEvenly(options.rotations, durationMs, rotating(provider, api), stop.signal),
    changeEvenly(options.reloads, durationMs, reloading(configuration, sidecar.admin), stop.signal),
    load,
    every(Math.min(5000, durationMs / 40), over.signal, sample),
    every(Math.max(10_000, durationMs / 20), over.signal, tell),
  ]);
  clearTimeout(timer);

  const ask = () => tally.measure('GET, small', () => app.exchange({ path: '/small' }));
  const final = await tally.measure('settling', () => settle(parts, ask));
  app.close();
  const terminatedAt = performance.now();
  const diedEarly = ended;
  const exit = await sidecar.terminate(EXIT_BOUND_MS);
  return {
    loadMs,
    endedEarly,
    tokenLifetimeMs: options.tokenLifetimeMs,
    rate: options.rate,
    shortExchanges,
    tally,
    grants: final?.grants ?? new Map(),
    tokensSeen: final?.tokensSeen ?? api.tokensSeen(),
    refusals: api.refusals,
    rotationsAsked: options.rotations,
    rotations,
    reloadsAsked: options.reloads,
    reloads,
    openAtSidecar: final?.openAtSidecar,
    openAtApi: api.open(),
    memory: memory.points(loadMs),
    logLines: sidecar.logged(),
    logLeaks: sidecar.leaks(),
    diedEarly,
    exit,
    exitMs: performance.now() - terminatedAt,
  };
}

/** The figures once nothing is in flight any more, or the bound is over. */
async function settle({ sidecar, api }: SoakParts, ask: () => Promise<unknown>) {
  const endsAt = performance.now() + SETTLE_BOUND_MS;
  let openAtSidecar = 0;
  do {
    await delay(SETTLE_INTERVAL_MS);
    openAtSidecar = (await readStatus(sidecar.admin)).inFlight;
  } while ((openAtSidecar > 0 || api.open() > 0) && performance.now() < endsAt);

  // Between the two readings a token may be renewed; then neither belongs to what the API has seen.
  for (;;) {
    const before = successes(await readGrants(sidecar.admin));
    await ask();
    const tokensSeen = api.tokensSeen();
    const grants = await readGrants(sidecar.admin);
    if (successes(grants) === before || performance.now() > endsAt) {
      return { grants, tokensSeen, openAtSidecar };
    }
  }
}

/** Calls `act` whenever this time has passed since the last call ended, until `stop`. */
async function every(intervalMs: number, stop: AbortSignal, act: () => Promise<unknown>): Promise<void> {
  for (;;) {
    await pause(intervalMs, stop);
    if (stop.aborted) return;
    await act();
  }
}
