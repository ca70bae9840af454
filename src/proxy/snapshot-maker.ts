import type { ForwardProxyConfig, RouteConfig } from '../config/config.ts';
import { policiesOf } from '../config/entries.ts';
import { SidecarError } from '../platform/errors.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { ListenAddress } from '../platform/net/address.ts';
import { yieldEvery } from '../platform/time/async.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { BearerSource } from '../token/bearer-source.ts';
import { capturedList } from './capture/captured-hosts.ts';
import { redirectedList } from './capture/redirected.ts';
import type { ServingOptions } from './data-path.ts';
import { mostConnections, processLimits } from './downstream/connection-limit.ts';
import type { Network } from './io/network.ts';
import type { ProxyMetrics } from './metrics.ts';
import type { UpstreamObserver } from './observer.ts';
import { logRefusal } from './proxy-error.ts';
import { AccessLog, recordingOf, type Tracer } from './recording/request-recorder.ts';
import { Destinations } from './routing/destinations.ts';
import { ForwardProxy, HOST_LISTS, type HostList } from './routing/forward-proxy.ts';
import type { RefusedHosts } from './routing/refused-hosts.ts';
import { type ActiveRoute, routeMatcher } from './routing/routes.ts';
import type { UpstreamStreams } from './streams/contract.ts';
import { TokenPlacement } from './streams/token-placement.ts';
import { admissionWith, ownNames } from './transaction/admission.ts';
import { ConfigSnapshot } from './transaction/config-snapshot.ts';
import { OpenUpstreams } from './upstream/connection-budget.ts';
import type { CapturedAddresses, ConnectGuard, OwnListeners } from './upstream/own-listeners.ts';
import { PoolReuse, UpstreamPools } from './upstream/pools.ts';

export interface SnapshotDependencies {
  /** Before the port is known if it is 0. */
  readonly listen: ListenAddress;
  readonly own: OwnListeners;
  readonly capturedAddresses: CapturedAddresses;
  readonly refused: RefusedHosts;
  readonly metrics: ProxyMetrics;
  readonly network: Network;
  readonly clock: Clock;
  readonly log: Logger;
  readonly accessLogger: Logger;
  readonly tracer: Tracer | undefined;
}

export class SnapshotMaker {
  readonly #surroundings: SnapshotDependencies;
  readonly #upstreams = new OpenUpstreams(mostConnections(undefined, processLimits()));
  #before: Destinations | undefined;

  constructor(surroundings: SnapshotDependencies) {
    this.#surroundings = surroundings;
  }

  /**
   * Unchanged routes keep their open connections; those of all others close once their requests have ended.
   * @throws {SidecarError} `configuration` when a TLS file cannot be read, or a route's credential has no source; the
   * previous snapshot is unchanged.
   */
  async make(options: ServingOptions, use: (made: ConfigSnapshot) => void): Promise<void> {
    const { dialThrough } = hasEgressProxy(options) ? await import('./upstream/egress-dial.ts') : {};
    const before = this.#before;
    /** Only while the snapshot is made: pools opened later are for a request. */
    let opened: UpstreamPools[] | undefined = [];
    /** Reported once in use: until then a route of this name may use others. */
    const certificates: (() => void)[] = [];
    const activateWith =
      (warm: PoolReuse): Activate =>
      (config, bearer, connectGuard) => {
        const taken = warm.take(config, bearer !== undefined);
        if (taken !== undefined) return this.#active(config, bearer, taken);
        const { clock, log, network, metrics } = this.#surroundings;
        const all = this.#upstreams;
        const route = metrics.forRoute(config.name);
        const observer: UpstreamObserver = {
          ...route,
          certificatesInUse(file, pem) {
            if (opened === undefined) route.certificatesInUse(file, pem);
            else certificates.push(() => route.certificatesInUse(file, pem));
          },
        };
        const pools = new UpstreamPools(config, {
          clock,
          log,
          network,
          all,
          dialThrough,
          connectGuard,
          observer,
        });
        opened?.push(pools);
        return this.#active(config, bearer, pools);
      };
    const ofRoutes = new PoolReuse(before?.routes ?? []);
    let ofLists: PoolReuse;
    let destinations: Destinations;
    try {
      const routes = await openRoutes(options, activateWith(ofRoutes));
      // In one turn from here on, since requests would open and retire pools of lists.
      ofLists = new PoolReuse(before?.listedRoutes ?? []);
      destinations = this.#openDestinations(routes, options, activateWith(ofLists));
    } catch (error) {
      for (const pools of opened) pools.close();
      throw error;
    }
    opened = undefined;
    this.#before = destinations;
    use(
      new ConfigSnapshot({
        destinations,
        admission: admissionWith(placeholdersOf(options)),
        limits: options.limits,
        ...this.#recording(options),
        callers: options.callers ?? [],
      }),
    );
    for (const say of certificates) say();
    ofRoutes.retireRest();
    ofLists.retireRest();
  }

  #recording({ accessLog }: ServingOptions): Pick<ConfigSnapshot, 'record' | 'logUnread'> {
    const { accessLogger, clock, log, tracer } = this.#surroundings;
    const lines = accessLog && new AccessLog(accessLogger, accessLog, Math.random);
    return {
      record: recordingOf({ clock, log, tracer, accessLog: lines }),
      logUnread: lines && ((unread) => lines.writeUnread(unread)),
    };
  }

  #active(config: RouteConfig, bearer: BearerSource | undefined, upstream: UpstreamStreams): ActiveRoute {
    return {
      config,
      matcher: routeMatcher(config.match),
      upstream,
      bearer,
      placement: config.inject && new TokenPlacement(config.inject),
      observer: this.#surroundings.metrics.forRoute(config.name),
      reportRefusal: (refused) => logRefusal(this.#surroundings.log, config, refused),
    };
  }

  #openDestinations(
    routes: readonly ActiveRoute[],
    options: ServingOptions,
    activate: Activate,
  ): Destinations {
    const { listen, own, capturedAddresses } = this.#surroundings;
    const { forwardProxy, capture, redirect, crossSiteRequests } = options;
    // Unlisted destinations must not lead to the sidecar's own listeners.
    const keptFromOwn: Activate = (config, bearer) =>
      activate(config, bearer, bearer === undefined ? own : undefined);
    // A listed host may, unless it is a captured one at its own address.
    const keptFromCaptured: Activate = (config, bearer) => activate(config, bearer, capturedAddresses);
    const open = (list: HostList, config: ForwardProxyConfig | undefined, activateRoute: Activate) =>
      config && this.#openList({ list, config, activate: activateRoute, options });
    return new Destinations({
      routes,
      forwardProxy: open('forwardProxy', forwardProxy, keptFromOwn),
      captured: open('captured', capture && capturedList(capture.hosts), keptFromCaptured),
      redirected: open('redirected', redirect && redirectedList(redirect), keptFromOwn),
      ownNames: crossSiteRequests === 'refuse' ? ownNames(options.routes, listen) : undefined,
    });
  }

  #openList({ list, config, activate, options }: ListToOpen): ForwardProxy {
    const { log, refused } = this.#surroundings;
    return new ForwardProxy({
      list,
      config,
      refused,
      bearerOf: ({ host, credential }) => bearerOf(`${HOST_LISTS[list].what}, ${host}`, credential, options),
      activate,
      log,
      before: this.#before?.[list],
    });
  }
}

interface ListToOpen {
  readonly list: HostList;
  readonly config: ForwardProxyConfig;
  readonly activate: Activate;
  readonly options: ServingOptions;
}

const ROUTES_AT_ONCE = 50;

/** In batches, so that requests go on meanwhile. */
async function openRoutes(options: ServingOptions, activate: Activate): Promise<ActiveRoute[]> {
  const pause = yieldEvery(ROUTES_AT_ONCE);
  const routes: ActiveRoute[] = [];
  for (const config of options.routes) {
    routes.push(activate(config, bearerOf(`route ${config.name}`, config.credential, options)));
    await pause();
  }
  return routes;
}

/** @param connectGuard where its connections may not lead. */
type Activate = (
  config: RouteConfig,
  bearer: BearerSource | undefined,
  connectGuard?: ConnectGuard,
) => ActiveRoute;

function bearerOf(user: string, credential: string, { bearers }: ServingOptions): BearerSource {
  const supply = bearers.get(credential);
  if (supply === undefined) {
    throw new SidecarError('configuration', `${user}: credential ${credential} is not configured`);
  }
  return supply.forUpstream(user);
}

function hasEgressProxy(options: ServingOptions): boolean {
  return policiesOf(options).some(({ egressProxy }) => egressProxy !== undefined);
}

/** Of all routes. */
function placeholdersOf(options: ServingOptions): string[] {
  const texts = policiesOf(options).flatMap(({ inject = [] }) =>
    inject.flatMap((one) => (one.into === 'placeholder' ? [one.placeholder] : [])),
  );
  return [...new Set(texts)];
}
