import { SidecarError } from '../platform/errors.ts';
import type { ListenAddress } from '../platform/net/address.ts';
import { capturedPorts } from './capture/captured-hosts.ts';
import { listenForRedirected, redirectedService } from './capture/redirected.ts';
import type { DataPath, ProxyOptions } from './data-path.ts';
import type { DownstreamContext } from './downstream/connection.ts';
import { HalfCloseWatch } from './downstream/half-close-watch.ts';
import { Listener } from './downstream/listener.ts';
import { systemNetwork } from './io/network.ts';
import { NO_ROUTE } from './metrics.ts';
import { RefusedHosts } from './routing/refused-hosts.ts';
import { type SnapshotDependencies, SnapshotMaker } from './snapshot-maker.ts';
import { TlsTermination } from './tls/termination.ts';
import type { ConfigSnapshot } from './transaction/config-snapshot.ts';
import { CapturedAddresses, OwnListeners } from './upstream/own-listeners.ts';

/**
 * Resolves once connections are accepted.
 * @throws {SidecarError} `configuration` when it cannot listen, a TLS file cannot be read, or a route's credential has
 * no source.
 */
export async function startProxy(options: ProxyOptions): Promise<DataPath> {
  const { metrics, clock, log, instanceId, listen, network = systemNetwork } = options;
  const { accessLogger = log, tracer } = options;
  const termination =
    options.leaves && new TlsTermination({ leaves: options.leaves, context: () => context });
  const own = new OwnListeners();
  for (const other of options.otherListeners ?? []) own.add(other);
  const capturedAddresses = new CapturedAddresses();
  const refused = new RefusedHosts(clock);
  const maker = new SnapshotMaker({
    listen,
    own,
    capturedAddresses,
    refused,
    metrics,
    network,
    clock,
    log,
    accessLogger,
    tracer,
  });
  let snapshot!: ConfigSnapshot;
  const use = (made: ConfigSnapshot): void => {
    snapshot = made;
  };
  await maker.make(options, use);
  const context: DownstreamContext = {
    snapshot: () => snapshot,
    clock,
    log,
    network,
    instanceId,
    noRoute: metrics.forRoute(NO_ROUTE),
    load: { inFlight: 0, phase: 'serving' },
    peers: new HalfCloseWatch(clock, network),
    http2Abuse: metrics.http2Abuse,
    ...(termination === undefined
      ? {}
      : {
          interceptConnect: (transaction, destination) =>
            termination.interceptConnect(transaction, destination),
        }),
  };
  const listener = new Listener(context);
  const address = await listenEverywhere(listener, options, context, termination, { own, capturedAddresses });
  return {
    address,
    spoken: () => listener.spoken(),
    async reconfigure(next) {
      const before = snapshot;
      await maker.make(next, use);
      return { whenUnused: () => before.whenUnused() };
    },
    refusedHosts: () => refused.latest(),
    enterLameDuck: () => listener.enterLameDuck(),
    whenUnused: (boundMs) => listener.whenUnused(boundMs),
    drain: (timeoutMs) => listener.drain(timeoutMs),
  };
}

/** @returns the proxy's own address. */
async function listenEverywhere(
  listener: Listener,
  { listen, connectionHandler, capture, redirect, findOriginal, metrics }: ProxyOptions,
  context: DownstreamContext,
  termination: TlsTermination | undefined,
  { own, capturedAddresses }: Pick<SnapshotDependencies, 'own' | 'capturedAddresses'>,
): Promise<ListenAddress> {
  try {
    const address = await listener.listen(listen, connectionHandler?.(context));
    own.add(address);
    const ports = capture === undefined ? [] : capturedPorts(capture.hosts, context, termination);
    for (const port of ports) {
      const opened = await listener.listen(port.listen, port.service);
      own.add(opened);
      capturedAddresses.add(opened);
    }
    if (redirect !== undefined) {
      if (termination === undefined || findOriginal === undefined) {
        throw new SidecarError('internal', 'redirected connections without what serves them');
      }
      const service = redirectedService({ context, termination, findOriginal, onResult: metrics.redirected });
      for (const opened of await listenForRedirected(listener, redirect.port, service)) own.add(opened);
    }
    return address;
  } catch (error) {
    await listener.drain(0);
    throw error;
  }
}
