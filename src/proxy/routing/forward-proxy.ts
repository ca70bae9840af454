import type {
  AllowedDestination,
  ForwardingPolicy,
  ForwardProxyConfig,
  RouteConfig,
  Upstream,
} from '../../config/config.ts';
import { DEFAULT_PORTS } from '../../config/values.ts';
import { SidecarError } from '../../platform/errors.ts';
import { LruMap } from '../../platform/limits/lru-map.ts';
import type { Logger } from '../../platform/log/logger.ts';
import {
  isDnsName,
  isLoopbackHost,
  isName,
  type ListenAddress,
  withoutBrackets,
  withoutRootDot,
} from '../../platform/net/address.ts';
import type { BearerSource } from '../../token/bearer-source.ts';
import { splitAbsoluteTarget } from '../http/syntax.ts';
import type { IncomingRequest } from '../streams/contract.ts';
import type { RefusedHosts } from './refused-hosts.ts';
import { type ActivateRoute, type ActiveRoute, type Destination, hostName } from './routes.ts';

export type HostList = 'forwardProxy' | 'captured' | 'redirected';

export const HOST_LISTS = {
  forwardProxy: { prefix: 'forward', what: 'the forward proxy' },
  captured: { prefix: 'capture', what: 'captured hosts' },
  redirected: { prefix: 'redirect', what: 'redirected hosts' },
} as const satisfies Record<HostList, { readonly prefix: string; readonly what: string }>;

/** From an absolute-form or CONNECT target (RFC 9112 §3.2). */
export interface RequestedHost {
  readonly scheme: 'http' | 'https';
  /** Lower-case; IPv6 in brackets. */
  readonly host: string;
  /** Absent: the scheme's own. */
  readonly port: number | undefined;
}

interface ForwardProxyOptions {
  readonly list: HostList;
  readonly config: ForwardProxyConfig;
  readonly bearerOf: (destination: AllowedDestination) => BearerSource;
  readonly activate: ActivateRoute;
  readonly refused: RefusedHosts;
  readonly log: Logger;
  /** Its destinations that are still listed are activated at once. */
  readonly before?: ForwardProxy | undefined;
}

interface KnownDestination {
  readonly active: ActiveRoute;
  readonly listed: AllowedDestination | undefined;
}

/** With wildcards an app could open any number of pools. */
const MAX_POOLS = 256;

type ForwardedHead = Pick<IncomingRequest, 'target' | 'host' | 'method'>;

type ListedHead = ForwardedHead & Pick<IncomingRequest, 'targetForm'>;

/** Only hosts on the list get the token, whatever else is configured. */
export class ForwardProxy {
  readonly #options: Omit<ForwardProxyOptions, 'before'>;
  /** By destination. */
  readonly #routes = new LruMap<string, KnownDestination>({
    max: MAX_POOLS,
    onEvicted: ({ active }) => active.upstream.drain(),
  });

  constructor({ before, ...options }: ForwardProxyOptions) {
    // `before` is dropped: it would keep its own predecessor's credentials and tokens.
    this.#options = options;
    for (const { host, port, upgradeToTls } of options.config.allow) {
      if (upgradeToTls || isLoopbackHost(host)) continue;
      options.log.warn({ host, port }, 'tokens go to this host in clear text');
    }
    if (before !== undefined) this.#goOn(before);
  }

  get activeRoutes(): readonly ActiveRoute[] {
    return [...this.#routes.entries()].map(([, { active }]) => active);
  }

  /**
   * RFC 9112 §3.2.2.
   * @throws {SidecarError} `bad_request` or `destination_not_allowed`.
   */
  requestDestination(head: ForwardedHead): Destination {
    const parts = splitAbsoluteTarget(head.target);
    if (parts === undefined || (parts.scheme !== 'http' && parts.scheme !== 'https')) {
      throw new SidecarError('bad_request', 'the request target must be an http or https URL');
    }
    const { scheme, authority, pathAndQuery } = parts;
    // RFC 9112 trusts the target, but readers of two names may disagree.
    if (head.host !== undefined && head.host.toLowerCase() !== authority.toLowerCase()) {
      throw new SidecarError('bad_request', 'the Host field and the request target name different hosts');
    }
    const asked = this.#asListed({ scheme, host: hostName(authority), port: portOf(authority) });
    const listed = allowedDestination(this.#options.config, asked);
    if (listed === undefined && this.#options.config.otherHosts === 'deny') throw this.#notAllowed(asked);
    return {
      route: this.#routeTo(asked, listed),
      target: originForm(head.method, pathAndQuery),
      tunnel: false,
    };
  }

  /**
   * A CONNECT (RFC 9110 §9.3.6) is a tunnel, or its connection ends here. It never carries a token itself.
   * @throws {SidecarError} `destination_not_allowed`.
   */
  tunnelDestination(head: ForwardedHead): Destination {
    const asked = this.#asListed({
      scheme: 'https',
      host: hostName(head.target),
      port: portOf(head.target),
    });
    const { config } = this.#options;
    const listed = allowedDestination(config, asked);
    if (config.connect === 'deny') {
      throw new SidecarError(
        'destination_not_allowed',
        'CONNECT is not allowed: a token could not be put into a tunnel',
      );
    }
    if (listed === undefined && config.otherHosts === 'deny') throw this.#notAllowed(asked);
    if (listed === undefined || config.connect === 'tunnel')
      return this.#tunnelTo(asked, listed, head.target);
    return this.#interceptedTunnel(asked, listed, head.target);
  }

  /**
   * For a request on a connection to `asked`, by CONNECT or capture.
   * @throws {SidecarError} `misdirected_request` for another authority, `destination_not_allowed`.
   */
  listedDestination(asked: RequestedHost, head: ListedHead): Destination {
    if (head.targetForm === 'authority') {
      throw new SidecarError(
        'destination_not_allowed',
        `CONNECT is not allowed on a connection to ${nameOf(asked)}`,
      );
    }
    const absolute = head.targetForm === 'absolute' ? splitAbsoluteTarget(head.target) : undefined;
    const authorities = [head.host, absolute?.authority].filter((authority) => authority !== undefined);
    const differs = absolute !== undefined && absolute.scheme !== asked.scheme;
    if (differs || !authorities.every((authority) => isAuthorityOf(asked, authority))) {
      throw new SidecarError(
        'misdirected_request',
        `the request is for another host than ${nameOf(asked)}, to which the connection was opened`,
      );
    }
    return {
      route: this.listedRoute(asked),
      target: absolute === undefined ? head.target : originForm(head.method, absolute.pathAndQuery),
      tunnel: false,
      listed: asked,
    };
  }

  /** @throws {SidecarError} `destination_not_allowed`. */
  listedRoute(asked: RequestedHost): ActiveRoute {
    const { config } = this.#options;
    const listed = allowedDestination(config, asked);
    // Connections that end here go on even if new ones are tunnelled: an app would keep asking on them.
    if (listed === undefined || config.connect === 'deny') throw this.#notAllowed(asked);
    return this.#routeTo(asked, listed);
  }

  lists(asked: RequestedHost): boolean {
    return allowedDestination(this.#options.config, asked) !== undefined;
  }

  passthroughRoute({ host, port }: ListenAddress): ActiveRoute {
    const authority = host.includes(':') ? `[${host}]` : host;
    return this.#routeVia(forwardUpstream({ scheme: 'http', host: authority, port }), undefined);
  }

  /** A final dot of DNS is left out, also for dialling. */
  #asListed(asked: RequestedHost): RequestedHost {
    const plain = { ...asked, host: withoutRootDot(asked.host) };
    return this.lists(plain) ? plain : asked;
  }

  /** The TLS of hosts that are not listed passes untouched or not at all. */
  #interceptedTunnel(asked: RequestedHost, listed: AllowedDestination, target: string): Destination {
    if (!isName(asked.host)) {
      throw new SidecarError(
        'destination_not_allowed',
        `${asked.host} is an address: TLS is intercepted for names alone`,
      );
    }
    if (asked.port === 80 && listed.port === undefined) {
      throw new SidecarError(
        'destination_not_allowed',
        `${nameOf(asked)} is a port of plain HTTP: TLS is intercepted on 443, and http:// is asked for without CONNECT`,
      );
    }
    return { route: this.#routeTo(asked, listed), target, tunnel: true, listed: asked };
  }

  /** Bytes only: nothing is upgraded or injected. */
  #tunnelTo(asked: RequestedHost, listed: AllowedDestination | undefined, target: string): Destination {
    const upstream = forwardUpstream(
      { ...asked, scheme: 'http' },
      listed === undefined ? undefined : { ...listed, upgradeToTls: false },
    );
    return { route: this.#routeVia(upstream, listed), target, tunnel: true };
  }

  #notAllowed(asked: RequestedHost): SidecarError<'destination_not_allowed'> {
    this.#options.refused.add(nameOf(asked));
    return new SidecarError(
      'destination_not_allowed',
      `${nameOf(asked)} is not on the list of ${HOST_LISTS[this.#options.list].what}`,
    );
  }

  #goOn(before: ForwardProxy): void {
    const { allow, otherHosts } = this.#options.config;
    for (const [, { active, listed }] of before.#routes.entries()) {
      const entry = listed && allow.find((one) => isSameDestination(one, listed));
      if (listed === undefined ? otherHosts === 'pass' : entry !== undefined) {
        this.#routeVia(active.config.upstream, entry);
      }
    }
  }

  #routeTo(asked: RequestedHost, listed: AllowedDestination | undefined): ActiveRoute {
    return this.#routeVia(forwardUpstream(asked, listed), listed);
  }

  #routeVia(upstream: Upstream, listed: AllowedDestination | undefined): ActiveRoute {
    const name = `${HOST_LISTS[this.#options.list].prefix}:${listed?.host ?? 'other'}`;
    // Two entries may lead to one upstream with different credentials.
    const entry = listed === undefined ? 'other' : this.#options.config.allow.indexOf(listed);
    const key = `${entry} ${upstream.protocol}://${upstream.authority}`;
    const known = this.#routes.get(key);
    if (known !== undefined) return known.active;
    const { bearerOf, activate, config } = this.#options;
    const route: RouteConfig = {
      name,
      match: { pathPrefix: '/' },
      upstream,
      stripPrefix: false,
      ...(listed ?? withoutToken(config)),
    };
    const active = activate(route, listed === undefined ? undefined : bearerOf(listed));
    this.#routes.set(key, { active, listed });
    return active;
  }
}

/** A host that is not on the list gets what the app sends, Authorization included. */
function withoutToken({ timeouts }: ForwardProxyConfig): ForwardingPolicy {
  return {
    credential: '',
    existingAuthorization: 'keep',
    whenTokenUnavailable: 'passthrough',
    retryOn401: false,
    timeouts,
    tls: {},
    protocol: 'auto',
  };
}

function isSameDestination(one: AllowedDestination, other: AllowedDestination): boolean {
  return one.host === other.host && one.port === other.port && one.upgradeToTls === other.upgradeToTls;
}

function nameOf({ host, port }: RequestedHost): string {
  return port === undefined ? host : `${host}:${port}`;
}

function portOf(authority: string): number | undefined {
  const digits = /:(\d+)$/.exec(authority)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

function isAuthorityOf({ scheme, host, port }: RequestedHost, authority: string): boolean {
  const standard = DEFAULT_PORTS[scheme];
  return (
    withoutRootDot(hostName(authority)) === host && (portOf(authority) ?? standard) === (port ?? standard)
  );
}

/** RFC 9112 §3.2.1 and §3.2.4. */
function originForm(method: string, pathAndQuery: string): string {
  if (pathAndQuery.startsWith('/')) return pathAndQuery;
  return pathAndQuery === '' && method === 'OPTIONS' ? '*' : `/${pathAndQuery}`;
}

export function allowedDestination(
  { allow }: ForwardProxyConfig,
  asked: RequestedHost,
): AllowedDestination | undefined {
  return allow.find(
    (destination) => matchesHost(destination.host, asked.host) && matchesPort(destination, asked),
  );
}

/**
 * The dialled host, the Host field and the certificate's name all come from here, so that they cannot differ. Port 80
 * belongs to plain http: an upgraded request goes to 443.
 * @param destination absent for a host that is not listed.
 */
export function forwardUpstream(asked: RequestedHost, destination?: AllowedDestination): Upstream {
  const protocol = destination?.upgradeToTls === true ? 'https' : asked.scheme;
  const named = asked.port ?? destination?.port ?? DEFAULT_PORTS[asked.scheme];
  const port = named === DEFAULT_PORTS[asked.scheme] ? DEFAULT_PORTS[protocol] : named;
  const isNamedByApp = destination === undefined || destination.host.startsWith('*.');
  return {
    protocol,
    host: withoutBrackets(asked.host),
    port,
    authority: port === DEFAULT_PORTS[protocol] ? asked.host : `${asked.host}:${port}`,
    basePath: '',
    ...(isNamedByApp ? { party: destination?.host ?? 'other hosts' } : {}),
  };
}

/**
 * `*.example.com` matches all names below, but not itself. The host must be a valid name: SNI may hold any octet, and
 * what matches is dialled and written into a CONNECT.
 */
function matchesHost(pattern: string, host: string): boolean {
  if (!pattern.startsWith('*.')) return pattern === host;
  return host.endsWith(pattern.slice(1)) && isDnsName(host);
}

/** Without a port only the scheme's own is allowed. */
function matchesPort({ port }: AllowedDestination, asked: RequestedHost): boolean {
  const askedPort = asked.port ?? DEFAULT_PORTS[asked.scheme];
  if (port === undefined) return askedPort === DEFAULT_PORTS.http || askedPort === DEFAULT_PORTS.https;
  return port === askedPort || asked.port === undefined;
}
