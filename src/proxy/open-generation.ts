/** What requests are served by, made of a configuration. */

import type { Clock } from '../clock.ts';
import type { ListenAddress } from '../config/config.ts';
import { SidecarError } from '../errors.ts';
import type { Logger } from '../log/logger.ts';
import type { BearerSource } from '../token/bearer-source.ts';
import { mostConnections, processLimits } from './app/connection-limit.ts';
import { capturedList } from './capture/captured-ports.ts';
import type { ServingOptions } from './data-path.ts';
import { admissionWith } from './exchange/admission.ts';
import { ownNames } from './exchange/cross-site-requests.ts';
import { Generation } from './exchange/generation.ts';
import type { Network } from './io/network.ts';
import type { ProxyMetrics } from './metrics.ts';
import type { ActivateRoute } from './routing/active-route.ts';
import { Destinations } from './routing/destinations.ts';
import { ForwardProxy } from './routing/forward-proxy.ts';
import { routeMatcher } from './routing/routes.ts';
import { TokenPlacement } from './streams/token-placement.ts';
import type { DialThrough } from './upstream/dialer.ts';
import { OpenUpstreams } from './upstream/open-upstreams.ts';
import type { OwnListeners } from './upstream/own-listeners.ts';
import { UpstreamPools } from './upstream/pools.ts';

/** What every generation is made with. */
export interface GenerationSurroundings {
  /** As it was asked for. */
  readonly listen: ListenAddress;
  readonly own: OwnListeners;
  readonly metrics: ProxyMetrics;
  readonly network: Network;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Makes generations whose upstreams share what the process has of connections. */
export class GenerationMaker {
  readonly #surroundings: GenerationSurroundings;
  readonly #upstreams = new OpenUpstreams(mostConnections(undefined, processLimits()));

  constructor(surroundings: GenerationSurroundings) {
    this.#surroundings = surroundings;
  }

  /** @throws {SidecarError} `configuration` when a TLS file cannot be read, or a route's credential has no source. */
  async make(options: ServingOptions): Promise<Generation> {
    const { dialThrough } = hasEgressProxy(options) ? await import('./upstream/egress-dial.ts') : {};
    return new Generation({
      destinations: this.#openDestinations(options, dialThrough),
      admission: admissionWith(placeholdersOf(options)),
      limits: options.limits,
    });
  }

  #openDestinations(options: ServingOptions, dialThrough: DialThrough | undefined): Destinations {
    const { metrics, clock, log, network, listen, own } = this.#surroundings;
    const keptFrom =
      (listeners: OwnListeners | undefined): ActivateRoute =>
      (config, bearer) => ({
        config,
        matcher: routeMatcher(config.match),
        upstream: new UpstreamPools(config, {
          clock,
          log,
          network,
          all: this.#upstreams,
          dialThrough,
          keptFrom: listeners,
        }),
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
}

function bearerOf(user: string, credential: string, { bearers }: ServingOptions): BearerSource {
  const supply = bearers.get(credential);
  if (supply === undefined) {
    throw new SidecarError('configuration', `${user}: credential ${credential} is not configured`);
  }
  return supply.forUpstream(user);
}

/** Whether a proxy is on the way of any route. */
function hasEgressProxy({ routes, forwardProxy, capture }: ServingOptions): boolean {
  return [...routes, ...(forwardProxy?.allow ?? []), ...(capture?.hosts ?? [])].some(
    ({ egressProxy }) => egressProxy !== undefined,
  );
}

/** Every text that stands for a token, for whatever route. */
function placeholdersOf({ routes, forwardProxy, capture }: ServingOptions): string[] {
  const policies = [...routes, ...(forwardProxy?.allow ?? []), ...(capture?.hosts ?? [])];
  const texts = policies.flatMap(({ inject = [] }) =>
    inject.flatMap((one) => (one.into === 'placeholder' ? [one.placeholder] : [])),
  );
  return [...new Set(texts)];
}
