import type {
  AllowedDestination,
  ForwardingPolicy,
  ForwardProxyConfig,
  RouteConfig,
} from '../../config/config.ts';
import { isLoopbackHost } from '../../config/values.ts';
import { SidecarError } from '../../errors.ts';
import type { Logger } from '../../log/logger.ts';
import type { BearerSource } from '../../token/bearer-source.ts';
import { splitAbsoluteTarget } from '../http/target-form.ts';
import type { IncomingRequest } from '../streams/message.ts';
import type { ActivateRoute, ActiveRoute } from './active-route.ts';
import type { Destination } from './destination.ts';
import { type AskedDestination, allowedDestination, forwardUpstream } from './forward-destination.ts';
import { hostName } from './routes.ts';

export interface ForwardProxyOptions {
  readonly config: ForwardProxyConfig;
  readonly bearerOf: (destination: AllowedDestination) => BearerSource;
  readonly activate: ActivateRoute;
  readonly log: Logger;
}

/** Destinations whose connections are kept; with wildcards an app could otherwise open pools without end. */
const MOST_POOLS = 256;

type ForwardedHead = Pick<IncomingRequest, 'target' | 'host' | 'method'>;

/**
 * For apps that set HTTP_PROXY: finds where an absolute-form request or a CONNECT goes, and what goes with it. A token
 * goes to hosts on the list and to no other, whatever else is configured.
 */
export class ForwardProxy {
  readonly #options: ForwardProxyOptions;
  /** By destination, the least recently used first. */
  readonly #routes = new Map<string, ActiveRoute>();

  constructor(options: ForwardProxyOptions) {
    this.#options = options;
    for (const { host, port, upgradeToTls } of options.config.allow) {
      if (upgradeToTls || isLoopbackHost(host)) continue;
      options.log.warn({ host, port }, 'tokens go to this host of the forward proxy in clear text');
    }
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
    // The RFC has a proxy take the target's word. Two names in one request are two destinations to somebody.
    if (head.host !== undefined && head.host.toLowerCase() !== authority.toLowerCase()) {
      throw new SidecarError('bad_request', 'the Host field and the request target name different hosts');
    }
    const asked: AskedDestination = { scheme, host: hostName(authority), port: portOf(authority) };
    const listed = allowedDestination(this.#options.config, asked);
    if (listed === undefined && this.#options.config.otherHosts === 'deny') throw notAllowed(asked);
    return {
      route: this.#routeTo(asked, listed),
      target: originForm(head.method, pathAndQuery),
      tunnel: false,
    };
  }

  /**
   * The destination of a CONNECT (RFC 9110 §9.3.6): listed hosts only, and never with a token.
   * @throws {SidecarError} `destination_not_allowed`.
   */
  tunnelDestination(head: ForwardedHead): Destination {
    const asked: AskedDestination = {
      scheme: 'https',
      host: hostName(head.target),
      port: portOf(head.target),
    };
    const { config } = this.#options;
    const listed = allowedDestination(config, asked);
    if (config.connect === 'deny') {
      throw new SidecarError(
        'destination_not_allowed',
        'CONNECT is not allowed: a token could not be put into a tunnel',
      );
    }
    if (listed === undefined) throw notAllowed(asked);
    // A tunnel is bytes to the address that was asked for; what is upgraded or injected elsewhere has no part in it.
    const route = this.#routeTo({ ...asked, scheme: 'http' }, { ...listed, upgradeToTls: false });
    return { route, target: head.target, tunnel: true };
  }

  close(): void {
    for (const { upstream } of this.#routes.values()) upstream.close();
  }

  #routeTo(asked: AskedDestination, listed: AllowedDestination | undefined): ActiveRoute {
    const upstream = forwardUpstream(asked, listed);
    const name = `forward:${listed?.host ?? 'other'}`;
    const key = `${name} ${upstream.protocol}://${upstream.authority}`;
    const known = this.#routes.get(key);
    if (known !== undefined) {
      this.#routes.delete(key);
      this.#routes.set(key, known);
      return known;
    }
    const { bearerOf, activate, config } = this.#options;
    const route: RouteConfig = {
      name,
      match: { pathPrefix: '/' },
      upstream,
      stripPrefix: false,
      ...(listed ?? withoutToken(config)),
    };
    const active = activate(route, listed === undefined ? undefined : bearerOf(listed));
    this.#routes.set(key, active);
    this.#forgetOldest();
    return active;
  }

  #forgetOldest(): void {
    if (this.#routes.size <= MOST_POOLS) return;
    const [oldest] = this.#routes;
    if (oldest === undefined) return;
    this.#routes.delete(oldest[0]);
    oldest[1].upstream.retire();
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

function notAllowed({ host, port }: AskedDestination): SidecarError<'destination_not_allowed'> {
  const where = port === undefined ? host : `${host}:${port}`;
  return new SidecarError('destination_not_allowed', `${where} is not on the list of the forward proxy`);
}

function portOf(authority: string): number | undefined {
  const digits = /:(\d+)$/.exec(authority)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** RFC 9112 §3.2.1 and §3.2.4. */
function originForm(method: string, pathAndQuery: string): string {
  if (pathAndQuery.startsWith('/')) return pathAndQuery;
  return pathAndQuery === '' && method === 'OPTIONS' ? '*' : `/${pathAndQuery}`;
}
