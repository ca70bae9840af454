/** Hosts on a list: which of them an app may reach, and what goes there with its request. */

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

/** The list by which a host gets the token: the forward proxy's, that of captured hosts, or of redirected connections. */
export type HostList = 'forwardProxy' | 'captured' | 'redirected';

/** The prefix of a list's routes in metrics and logs, and the list's name in sentences. */
export const HOST_LISTS = {
  forwardProxy: { prefix: 'forward', what: 'the forward proxy' },
  captured: { prefix: 'capture', what: 'captured hosts' },
  redirected: { prefix: 'redirect', what: 'redirected hosts' },
} as const satisfies Record<HostList, { readonly prefix: string; readonly what: string }>;

/** Where an app asks to go: the authority of an absolute-form or CONNECT target (RFC 9112 §3.2). */
export interface AskedDestination {
  readonly scheme: 'http' | 'https';
  /** Lower-case name or address, IPv6 in brackets. */
  readonly host: string;
  /** Absent: the scheme's own. */
  readonly port: number | undefined;
}

interface ForwardProxyOptions {
  /** The list that these hosts are on. */
  readonly list: HostList;
  readonly config: ForwardProxyConfig;
  readonly bearerOf: (destination: AllowedDestination) => BearerSource;
  readonly activate: ActivateRoute;
  /** Remembers the hosts that the list has kept out. */
  readonly refused: RefusedHosts;
  readonly log: Logger;
  /** The proxy that this one replaces: its destinations that are still listed are activated at once. */
  readonly before?: ForwardProxy | undefined;
}

interface KnownDestination {
  readonly active: ActiveRoute;
  /** The entry of the list by which it was found; undefined where there is none. */
  readonly listed: AllowedDestination | undefined;
}

/** Destinations whose connections are kept; wildcards would otherwise let an app open any number of pools. */
const MAX_POOLS = 256;

type ForwardedHead = Pick<IncomingRequest, 'target' | 'host' | 'method'>;

/** With the form of its target, which is usually a path. */
type ListedHead = ForwardedHead & Pick<IncomingRequest, 'targetForm'>;

/**
 * For apps that set HTTP_PROXY: finds where an absolute-form request or a CONNECT goes, and what goes with it. A token
 * goes to hosts on the list and to no other, whatever else is configured.
 */
export class ForwardProxy {
  readonly #options: Omit<ForwardProxyOptions, 'before'>;
  /** By destination. */
  readonly #routes = new LruMap<string, KnownDestination>({
    max: MAX_POOLS,
    onEvicted: ({ active }) => active.upstream.retire(),
  });

  constructor({ before, ...options }: ForwardProxyOptions) {
    // Without `before`, which would keep its own predecessor, and so on: each with its credentials and their last tokens.
    this.#options = options;
    for (const { host, port, upgradeToTls } of options.config.allow) {
      if (upgradeToTls || isLoopbackHost(host)) continue;
      options.log.warn({ host, port }, 'tokens go to this host in clear text');
    }
    if (before !== undefined) this.#goOn(before);
  }

  /** Routes that are activated and not yet forgotten. */
  get activeRoutes(): readonly ActiveRoute[] {
    return [...this.#routes.entries()].map(([, { active }]) => active);
  }

  /**
   * The destination of an absolute-form request (RFC 9112 §3.2.2).
   * @throws {SidecarError} `bad_request` or `destination_not_allowed`.
   */
  requestDestination(head: ForwardedHead): Destination {
    const parts = splitAbsoluteTarget(head.target);
    if (parts === undefined || (parts.scheme !== 'http' && parts.scheme !== 'https')) {
      throw new SidecarError('bad_request', 'the request target must be an http or https URL');
    }
    const { scheme, authority, pathAndQuery } = parts;
    // The RFC has a proxy trust the target. But two names in one request are two destinations to some reader.
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
   * The destination of a CONNECT (RFC 9110 §9.3.6), which never carries a token itself: a tunnel, or a connection that
   * ends here.
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
   * The destination of a request that came on a connection to `asked`: through a CONNECT whose TLS ended here, or by capture.
   * @throws {SidecarError} `misdirected_request` where it is for another authority, `destination_not_allowed`.
   */
  listedDestination(asked: AskedDestination, head: ListedHead): Destination {
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

  /**
   * The route of connections to `asked` that end here.
   * @throws {SidecarError} `destination_not_allowed`.
   */
  listedRoute(asked: AskedDestination): ActiveRoute {
    const { config } = this.#options;
    const listed = allowedDestination(config, asked);
    // Even where new connections are tunnelled, those that end here go on: an app would keep asking on them.
    if (listed === undefined || config.connect === 'deny') throw this.#notAllowed(asked);
    return this.#routeTo(asked, listed);
  }

  /** Whether connections to `asked` end here. */
  lists(asked: AskedDestination): boolean {
    return allowedDestination(this.#options.config, asked) !== undefined;
  }

  /** The route of connections that pass to where they were going, listed or not: bytes, without a token. */
  routePast({ host, port }: ListenAddress): ActiveRoute {
    const authority = host.includes(':') ? `[${host}]` : host;
    return this.#routeVia(forwardUpstream({ scheme: 'http', host: authority, port }), undefined);
  }

  /** A name with the dot of DNS at its end is the host that is listed without it, and is dialled as that. */
  #asListed(asked: AskedDestination): AskedDestination {
    const plain = { ...asked, host: withoutRootDot(asked.host) };
    return this.lists(plain) ? plain : asked;
  }

  /** Listed hosts get their token; the TLS of others is theirs, and passes untouched or not at all. */
  #interceptedTunnel(asked: AskedDestination, listed: AllowedDestination, target: string): Destination {
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

  /** A tunnel is bytes to the address that was asked for: nothing is upgraded or injected. */
  #tunnelTo(asked: AskedDestination, listed: AllowedDestination | undefined, target: string): Destination {
    const upstream = forwardUpstream(
      { ...asked, scheme: 'http' },
      listed === undefined ? undefined : { ...listed, upgradeToTls: false },
    );
    return { route: this.#routeVia(upstream, listed), target, tunnel: true };
  }

  #notAllowed(asked: AskedDestination): SidecarError<'destination_not_allowed'> {
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

  #routeTo(asked: AskedDestination, listed: AllowedDestination | undefined): ActiveRoute {
    return this.#routeVia(forwardUpstream(asked, listed), listed);
  }

  #routeVia(upstream: Upstream, listed: AllowedDestination | undefined): ActiveRoute {
    const name = `${HOST_LISTS[this.#options.list].prefix}:${listed?.host ?? 'other'}`;
    // Entries for different ports of one host may lead to one upstream, each with its own credential.
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

/** What the app sends to a host that is not on the list is its own, Authorization included. */
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

/** Whether two entries of a list lead to the same upstreams. */
function isSameDestination(one: AllowedDestination, other: AllowedDestination): boolean {
  return one.host === other.host && one.port === other.port && one.upgradeToTls === other.upgradeToTls;
}

function nameOf({ host, port }: AskedDestination): string {
  return port === undefined ? host : `${host}:${port}`;
}

function portOf(authority: string): number | undefined {
  const digits = /:(\d+)$/.exec(authority)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Whether an authority from Host or `:authority` is what was asked for, with or without the port of its scheme. */
function isAuthorityOf({ scheme, host, port }: AskedDestination, authority: string): boolean {
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

/** The first entry of the list that has this host and port, if any. */
export function allowedDestination(
  { allow }: ForwardProxyConfig,
  asked: AskedDestination,
): AllowedDestination | undefined {
  return allow.find(
    (destination) => matchesHost(destination.host, asked.host) && matchesPort(destination, asked),
  );
}

/**
 * Where a request to a listed (or, without `destination`, a passed) host is sent. The dialled host, the Host field and
 * the certificate's name all come from here, so that they cannot diverge. Port 80, explicit or not, belongs to plain
 * http: an upgraded request goes to 443.
 */
export function forwardUpstream(asked: AskedDestination, destination?: AllowedDestination): Upstream {
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
 * `*.example.com` stands for every name below example.com, at any depth, but not for example.com itself. The host must
 * be a valid name: SNI may hold any octet, and what matches is dialled, certified and written into a CONNECT.
 */
function matchesHost(pattern: string, host: string): boolean {
  if (!pattern.startsWith('*.')) return pattern === host;
  return host.endsWith(pattern.slice(1)) && isDnsName(host);
}

/** A destination without a port allows the well-known ones only: the list names services, not every port of a host. */
function matchesPort({ port }: AllowedDestination, asked: AskedDestination): boolean {
  const askedPort = asked.port ?? DEFAULT_PORTS[asked.scheme];
  if (port === undefined) return askedPort === DEFAULT_PORTS.http || askedPort === DEFAULT_PORTS.https;
  return port === askedPort || asked.port === undefined;
}
