import type { ProxyLimits, RouteConfig } from '../../config/config.ts';
import { SidecarError } from '../../platform/errors.ts';
import type { ListenAddress } from '../../platform/net/address.ts';
import { type CrossSite, crossSite, hostOf } from '../../platform/net/cross-site.ts';
import { fieldValues, hasField } from '../http/fields.ts';
import { splitAbsoluteTarget } from '../http/syntax.ts';
import type { Destinations } from '../routing/destinations.ts';
import type { ActiveRoute, Destination } from '../routing/routes.ts';
import type { IncomingRequest } from '../streams/contract.ts';
import { hasPassed } from '../streams/header-rules.ts';
import { bodyTooLarge } from './replayable-body.ts';

export interface RuleContext {
  readonly instanceId: string;
  readonly load: ProxyLoad;
}

interface ProxyLoad {
  /** Over all connections. */
  inFlight: number;
  phase: LoadPhase;
}

/**
 * - `leaving`: requests are served, clients should close their connections.
 * - `finishing`: no new requests are taken.
 * - `cutting`: the requests in flight have no time left.
 */
type LoadPhase = 'serving' | 'leaving' | 'finishing' | 'cutting';

interface RuleSettings {
  readonly destinations: Pick<Destinations, 'ownNames'>;
  readonly limits: ProxyLimits;
}

/** @throws {SidecarError} */
type ArrivalRule = (request: IncomingRequest, context: RuleContext) => void;

/** @throws {SidecarError} */
type DestinationRule = (
  request: IncomingRequest,
  destination: Destination,
  context: RuleContext,
  settings: RuleSettings,
) => void;

export interface Admission {
  readonly onArrival: readonly ArrivalRule[];
  /** Run once the request counts for its route. */
  readonly onDestination: readonly DestinationRule[];
}

/** For listeners without placeholders. */
export const ADMISSION: Admission = {
  onArrival: [whileDraining, loops],
  onDestination: [ofOtherSites, withOwnAuthorization, tooLarge, tooMany],
};

export function admissionWith(placeholders: readonly string[]): Admission {
  if (placeholders.length === 0) return ADMISSION;
  return {
    ...ADMISSION,
    onDestination: [strayPlaceholders(placeholders), ...ADMISSION.onDestination],
  };
}

function whileDraining(_: IncomingRequest, { load }: RuleContext): void {
  if (isDraining(load)) throw new SidecarError('draining', 'the sidecar takes no new requests');
}

function loops({ fields }: IncomingRequest, { instanceId }: RuleContext): void {
  if (hasPassed(fields, instanceId)) {
    throw new SidecarError('loop_detected', 'the request has already passed this sidecar');
  }
}

function ofOtherSites(
  request: IncomingRequest,
  destination: Destination,
  _: RuleContext,
  { destinations: { ownNames } }: RuleSettings,
): void {
  if (ownNames !== undefined) refuseCrossSite(request, destination, ownNames);
}

function withOwnAuthorization(request: IncomingRequest, { route }: Destination): void {
  const { config, placement } = route;
  if (config.existingAuthorization === 'reject' && hasOwnCredentials(route, request)) {
    const where = placement === undefined ? 'Authorization' : 'Authorization, or what inject names';
    throw new SidecarError(
      'authorization_not_allowed',
      `route ${config.name} takes no request that has ${where}`,
    );
  }
}

function tooLarge(
  { contentLength }: IncomingRequest,
  _: Destination,
  __: RuleContext,
  { limits: { requestBodyBytes } }: RuleSettings,
): void {
  if (requestBodyBytes > 0 && (contentLength ?? 0) > requestBodyBytes) throw bodyTooLarge(requestBodyBytes);
}

function tooMany(
  _: IncomingRequest,
  __: Destination,
  { load }: RuleContext,
  { limits: { maxInFlight } }: RuleSettings,
): void {
  if (load.inFlight >= maxInFlight) {
    throw new SidecarError('overloaded', `${maxInFlight} requests are in flight`);
  }
}

/** Refuses a request whose placeholder would leave unswapped. Tunnels are exempt: they can't be read. */
function strayPlaceholders(placeholders: readonly string[]): DestinationRule {
  return (request, { route, tunnel }) => {
    if (tunnel) return;
    const { fields } = request;
    for (let at = 0; at < fields.length; at += 2) {
      const name = fields[at] as string;
      const value = fields[at + 1] as string;
      const text = placeholders.find((placeholder) => value.includes(placeholder));
      if (text === undefined) continue;
      const isSwapped = route.placement?.swapped(name, value, '') !== undefined;
      if (isSwapped && !keepsOwnCredentials(route, request)) continue;
      throw new SidecarError(
        'placeholder_not_allowed',
        `route ${route.config.name} does not swap the placeholder ${text} where the request has it`,
      );
    }
  };
}

const DETAILS: Readonly<Record<CrossSite, string>> = {
  another_site: 'Sec-Fetch-Site or Origin says that the page of another site makes the request',
  foreign_name: 'the Host is a name that no route has; localhost and IP addresses are taken, too',
};

/** Names under the operator's control. */
export function ownNames(routes: readonly RouteConfig[], listen: ListenAddress): ReadonlySet<string> {
  const names = routes.flatMap(({ match, upstream }) => [match.host, upstream.host]);
  return new Set([listen.host, ...names].map(hostOf).filter((name) => name !== ''));
}

/**
 * Refuses what another site's page makes a browser send: the proxy would add a token. CONNECT and hosts without a token
 * are exempt. The absolute form comes from browsers that use this proxy; then the list decides.
 * @throws {SidecarError} `cross_site_request`.
 */
export function refuseCrossSite(
  head: Pick<IncomingRequest, 'fields' | 'host' | 'target' | 'targetForm'>,
  { route, tunnel, listed }: Destination,
  names: ReadonlySet<string>,
): void {
  if (tunnel || route.bearer === undefined) return;
  const absolute = head.targetForm === 'absolute' ? splitAbsoluteTarget(head.target) : undefined;
  const caller: Parameters<typeof crossSite>[0] = {
    scheme: (listed ?? absolute)?.scheme === 'https' ? 'https' : 'http',
    authority: absolute?.authority ?? head.host,
    origin: onlyValue(head, 'origin'),
    site: onlyValue(head, 'sec-fetch-site'),
  };
  const reason = crossSite(caller, (host) => (listed ?? absolute) !== undefined || names.has(host));
  if (reason !== undefined) throw new SidecarError('cross_site_request', DETAILS[reason]);
}

/** Repeated fields are joined, and equal no good value. */
function onlyValue({ fields }: Pick<IncomingRequest, 'fields'>, name: string): string | undefined {
  const values = fieldValues(fields, name);
  return values.length === 0 ? undefined : values.join(', ');
}

/** Whether the request brings an identity where this route's token goes. */
function hasOwnCredentials({ placement }: ActiveRoute, request: IncomingRequest): boolean {
  return placement === undefined
    ? hasField(request.fields, 'authorization')
    : placement.areOwnCredentials(request);
}

export function keepsOwnCredentials(route: ActiveRoute, request: IncomingRequest): boolean {
  return route.config.existingAuthorization === 'keep' && hasOwnCredentials(route, request);
}

export function isDraining({ phase }: Pick<ProxyLoad, 'phase'>): boolean {
  return phase === 'finishing' || phase === 'cutting';
}
