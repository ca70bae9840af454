import type { ListenAddress } from '../config/config.ts';
import { SidecarError } from '../errors.ts';
import type { BearerSource } from '../token/bearer-source.ts';
import { mostConnections, processLimits } from './app/connection-limit.ts';
import type { AppContext } from './app/context.ts';
import { Listener } from './app/listener.ts';
import { PeerWatch } from './app/peer-watch.ts';
import { capturedList, capturedPorts } from './capture/captured-ports.ts';
import type { DataPath, ProxyOptions } from './data-path.ts';
import { admissionWith } from './exchange/admission.ts';
import { ownNames } from './exchange/cross-site-requests.ts';
import { type Network, systemNetwork } from './io/network.ts';
import type { ActivateRoute } from './routing/active-route.ts';
import { Destinations } from './routing/destinations.ts';
import { ForwardProxy } from './routing/forward-proxy.ts';
import { routeMatcher } from './routing/routes.ts';
import { TokenPlacement } from './streams/token-placement.ts';
import { TlsInterceptor } from './tls/interceptor.ts';
import { TlsTermination } from './tls/termination.ts';
import type { DialThrough } from './upstream/dialer.ts';
import { OpenUpstreams } from './upstream/open-upstreams.ts';
import { OwnListeners } from './upstream/own-listeners.ts';
import { UpstreamPools } from './upstream/pools.ts';

/** The `route` label of requests that no route matched. */
const NO_ROUTE = 'none';

/**
 * Starts the data path: resolves once it accepts connections.
 * @throws {SidecarError} `configuration` when it cannot listen, a TLS file cannot be read, or a route's credential
 * has no source.
 */
export async function startProxy(options: ProxyOptions): Promise<DataPath> {
  const { metrics, limits, clock, log, instanceId, network = systemNetwork } = options;
  const termination =
    options.leaves && new TlsTermination({ leaves: options.leaves, context: () => context });
  const own = new OwnListeners();
  for (const other of options.otherListeners ?? []) own.add(other);
  const { dialThrough } = hasEgressProxy(options) ? await import('./upstream/egress-dial.ts') : {};
  const context: AppContext = {
    destinations: openDestinations(options, network, dialThrough, own),
    admission: admissionWith(placeholdersOf(options)),
    limits,
    clock,
    log,
    network,
    instanceId,
    noRoute: metrics.forRoute(NO_ROUTE),
    load: { inFlight: 0, draining: false },
    peers: new PeerWatch(clock, network),
    http2Abuse: metrics.http2Abuse,
    ...(termination === undefined ? {} : { interceptor: new TlsInterceptor(termination, () => context) }),
  };
  const listener = new Listener(context);
  const address = await listenEverywhere(listener, options, context, termination, own);
  return {
    address,
    spoken: () => listener.spoken(),
    whenUnused: (boundMs) => listener.whenUnused(boundMs),
    drain: (timeoutMs) => listener.drain(timeoutMs),
  };
}

/** @returns the proxy's own address. */
async function listenEverywhere(
  listener: Listener,
  { listen, capture }: ProxyOptions,
  context: AppContext,
  termination: TlsTermination | undefined,
  own: OwnListeners,
): Promise<ListenAddress> {
  try {
    const address = await listener.listen(listen);
    own.add(address);
    const ports = capture === undefined ? [] : capturedPorts(capture.hosts, context, termination);
    for (const port of ports) own.add(await listener.listen(port.listen, port.service));
    return address;
  } catch (error) {
    await listener.drain(0);
    throw error;
  }
}

function openDestinations(
  options: ProxyOptions,
  network: Network,
  dialThrough: DialThrough | undefined,
  own: OwnListeners,
): Destinations {
  const { metrics, clock, log, listen } = options;
  const all = new OpenUpstreams(mostConnections(undefined, processLimits()));
  const keptFrom =
    (listeners: OwnListeners | undefined): ActivateRoute =>
    (config, bearer) => ({
      config,
      matcher: routeMatcher(config.match),
      upstream: new UpstreamPools(config, { clock, log, network, all, dialThrough, keptFrom: listeners }),
      bearer,
      placement: config.inject && new TokenPlacement(config.inject),
      observer: metrics.forRoute(config.name),
    });
  const activate = keptFrom(undefined);
  const routes = options.routes.map((config) =>
    activate(config, bearerOf(`route ${config.name}`, config.credential, options)),
  );
  const forwardProxy =
    options.forwardProxy &&
    new ForwardProxy({
      prefix: 'forward',
      config: options.forwardProxy,
      bearerOf: ({ host, credential }) => bearerOf(`forward proxy, ${host}`, credential, options),
      // Without a token are those that nobody has listed.
      activate: (config, bearer) => keptFrom(bearer === undefined ? own : undefined)(config, bearer),
      log,
    });
  const captured =
    options.capture &&
    new ForwardProxy({
      prefix: 'capture',
      config: capturedList(options.capture.hosts),
      bearerOf: ({ host, credential }) => bearerOf(`capture of ${host}`, credential, options),
      activate,
      log,
    });
  const refuses = options.crossSiteRequests === 'refuse';
  return new Destinations({
    routes,
    forwardProxy,
    captured,
    ownNames: refuses ? ownNames(options.routes, listen) : undefined,
  });
}

function bearerOf(user: string, credential: string, { bearers }: ProxyOptions): BearerSource {
  const supply = bearers.get(credential);
  if (supply === undefined) {
    throw new SidecarError('configuration', `${user}: credential ${credential} is not configured`);
  }
  return supply.forUpstream(user);
}

/** Whether a proxy is on the way of any route. */
function hasEgressProxy({ routes, forwardProxy, capture }: ProxyOptions): boolean {
  return [...routes, ...(forwardProxy?.allow ?? []), ...(capture?.hosts ?? [])].some(
    ({ egressProxy }) => egressProxy !== undefined,
  );
}

/** Every text that stands for a token, for whatever route. */
function placeholdersOf({ routes, forwardProxy, capture }: ProxyOptions): string[] {
  const policies = [...routes, ...(forwardProxy?.allow ?? []), ...(capture?.hosts ?? [])];
  const texts = policies.flatMap(({ inject = [] }) =>
    inject.flatMap((one) => (one.into === 'placeholder' ? [one.placeholder] : [])),
  );
  return [...new Set(texts)];
}
