import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cell, type Http1Cell, protocolOf } from '../cells.ts';
import type { Cores } from '../cores.ts';
import { freePort, whenListening } from '../free-port.ts';
import { startPinned } from '../pinned-process.ts';
import { type TokenEndpoint, tokenOf } from '../token-endpoint.ts';
import type { Upstream } from '../upstream.ts';
import { fetchOverHttp1, fetchOverHttp2 } from './probe.ts';
import type { ProxyKind } from './proxy.ts';

/** What every proxy of a run shares. */
export interface Dependencies {
  readonly directory: string;
  readonly cores: Cores;
  readonly upstream: Upstream;
  readonly tokenEndpoint: TokenEndpoint;
}

export interface RunningProxy {
  readonly kind: ProxyKind;
  readonly pid: number;
  readonly port: number;
  /** From the fork to the first connection that was accepted. */
  readonly connectedAfterMs: number;
  /** From the fork to the log line that says so, which only the sidecar writes. */
  readonly loggedAfterMs: () => number | undefined;
  hasEnded(): boolean;
  stop(): Promise<void>;
}

type LaunchedCell = Pick<Cell, 'protocol' | 'upstream' | 'tokenBytes'> & Pick<Http1Cell, 'bound'>;

function isBound(kind: ProxyKind, { bound }: LaunchedCell): boolean {
  return bound === true && kind.bindsTokens === true;
}

const READY_BOUND_MS = 15_000;
const LISTENING = '"msg":"listening"';

/** Starts a proxy and waits until it listens. It need not have its token yet. */
export async function launchProxy(
  kind: ProxyKind,
  cell: LaunchedCell,
  { directory, cores, upstream, tokenEndpoint }: Dependencies,
): Promise<RunningProxy> {
  const port = await freePort();
  const launch = await kind.prepare({
    directory: await mkdtemp(join(directory, `${kind.name}-`)),
    port,
    upstreamPort: upstream.portFor(cell),
    tls: cell.upstream === 'tls',
    protocol: protocolOf(cell),
    caFile: upstream.caFile,
    token: tokenOf(cell.tokenBytes),
    bound: isBound(kind, cell),
    tokenUrl: { port: tokenEndpoint.port, path: tokenEndpoint.path(cell.tokenBytes) },
  });
  const startedAtMs = performance.now();
  const child = startPinned({ ...launch, cores: cores.proxy });
  let loggedAfterMs: number | undefined;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (text.includes(LISTENING)) loggedAfterMs ??= performance.now() - startedAtMs;
  });
  let hasEnded = false;
  void child.exited.then(() => {
    hasEnded = true;
  });
  try {
    await whenListening(port, () => (hasEnded ? `${kind.name} ended: ${child.errorOutput()}` : undefined));
  } catch (error) {
    await child.stop();
    throw error;
  }
  return {
    kind,
    pid: child.pid,
    port,
    connectedAfterMs: performance.now() - startedAtMs,
    loggedAfterMs: () => loggedAfterMs,
    hasEnded: () => hasEnded,
    stop: () => child.stop(),
  };
}

/**
 * Starts a proxy and waits until a request through it has reached the upstream with exactly the token: proof that it
 * does the work it is measured at.
 */
export async function startProxy(
  kind: ProxyKind,
  cell: LaunchedCell,
  surroundings: Dependencies,
): Promise<RunningProxy> {
  const proxy = await launchProxy(kind, cell, surroundings);
  const fetchText = protocolOf(cell) === 'http2' ? fetchOverHttp2 : fetchOverHttp1;
  const expected = `${isBound(kind, cell) ? 'DPoP' : 'Bearer'} ${tokenOf(cell.tokenBytes)}`;
  const end = performance.now() + READY_BOUND_MS;
  for (;;) {
    const answer = await fetchText(proxy.port, '/authorization').catch((error: Error) => error.message);
    if (answer === expected) return proxy;
    if (performance.now() > end) {
      await proxy.stop();
      throw new Error(
        `${kind.name} does not inject the token; the upstream's answer: ${answer.slice(0, 100)}`,
      );
    }
    await sleep(50);
  }
}
