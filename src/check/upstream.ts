import type { Config, ForwardingPolicy, Upstream } from '../config/config.ts';
import { sidecarListenerAt } from '../config/sidecar-listeners.ts';
import { DEFAULT_PORTS } from '../config/values.ts';
import { formatAddress, withoutBrackets } from '../platform/net/address.ts';
import { checkCertificateFiles } from './certificates.ts';
import { type About, about, type CheckContext, type Destination, type Finding } from './check-context.ts';
import { reach } from './reach.ts';
import type { ExaminedToken } from './upstream-request.ts';

interface ExaminedUpstream {
  /** `route payments`, `destination api.example.com`. */
  readonly subject: string;
  readonly policy: ForwardingPolicy;
  readonly upstream: Upstream;
  /** Below the upstream's own path. */
  readonly probe?: string | undefined;
}

export function upstreamsOf(
  { routes, forwardProxy, capture, redirect }: Config,
  probes: ReadonlyMap<string, string>,
): ExaminedUpstream[] {
  const ofRoutes = routes.map(
    (route): ExaminedUpstream => ({
      subject: `route ${route.name}`,
      policy: route,
      upstream: route.upstream,
      probe: probes.get(route.name),
    }),
  );
  const intercepts = forwardProxy?.connect === 'intercept';
  const listed = [
    ...(forwardProxy?.allow ?? []).map((policy) => ({ policy, isTls: policy.upgradeToTls || intercepts })),
    ...(redirect?.hosts ?? []).map((policy) => ({ policy, isTls: true })),
  ];
  const destinations = listed
    .filter(({ policy }) => !policy.host.startsWith('*'))
    .map(({ policy, isTls }): ExaminedUpstream => {
      const port = isTls && policy.port === 80 ? 443 : policy.port;
      return {
        subject: `destination ${policy.host}`,
        policy,
        upstream: upstreamAt(withoutBrackets(policy.host), isTls, port),
      };
    });
  const captured = (capture?.hosts ?? []).map((policy): ExaminedUpstream => {
    const [tlsPort, clearPort] = [policy.ports[0], policy.clearPorts[0]];
    const isTls = tlsPort !== undefined || policy.upgradeToTls;
    return {
      subject: `captured host ${policy.host}`,
      policy,
      upstream: upstreamAt(policy.host, isTls, tlsPort ?? (isTls && clearPort === 80 ? 443 : clearPort)),
    };
  });
  return [...ofRoutes, ...destinations, ...captured];
}

function upstreamAt(host: string, isTls: boolean, given: number | undefined): Upstream {
  const protocol = isTls ? 'https' : 'http';
  const standard = DEFAULT_PORTS[protocol];
  const port = given ?? standard;
  const whole = formatAddress({ host, port });
  const authority = port === standard ? whole.slice(0, whole.lastIndexOf(':')) : whole;
  return { protocol, host, port, authority, basePath: '' };
}

const UPSTREAM_STEPS = {
  name: 'upstream_name',
  connection: 'upstream_connection',
  tls: 'upstream_tls',
} as const;

export async function checkUpstream(
  examined: ExaminedUpstream,
  config: Config,
  token: ExaminedToken | undefined,
  examination: CheckContext,
): Promise<Finding[]> {
  const { subject, policy, upstream, probe } = examined;
  const of = about(subject);
  const nowMs = examination.clock.now().wallMs;
  const files = await checkCertificateFiles(policy.tls, undefined, 'upstream_certificates', of, nowMs);
  const own = ownFinding(config, [upstream.host], upstream, of);
  if (own !== undefined || examination.isOffline) return [...(own ?? []), ...files];

  const to = destinationOf(policy, upstream, config, examination);
  const way = await reach(to, UPSTREAM_STEPS, of, examination);
  const led = ownFinding(config, way.addresses, upstream, of);
  const findings = [...files, ...way.findings, ...(led ?? [])];
  if (!way.isReached || led !== undefined || probe === undefined) return findings;
  const { checkRequests } = await import('./upstream-request.ts');
  return [
    ...findings,
    ...(await checkRequests({ to, policy, upstream, path: probe, token }, of, examination)),
  ];
}

function ownFinding(
  config: Config,
  addresses: readonly string[],
  { port, protocol, authority }: Upstream,
  of: About,
): Finding[] | undefined {
  const listener = sidecarListenerAt(config, addresses, port);
  if (listener === undefined) return undefined;
  return [
    of.failure(
      'destination',
      'configuration',
      `${protocol}://${authority} is the sidecar itself (${listener.what}, ${formatAddress(listener.address)})`,
      'set the upstream to where the API is: the app asks the sidecar, the sidecar asks the upstream',
    ),
  ];
}

function destinationOf(
  { tls, timeouts, egressProxy, protocol }: ForwardingPolicy,
  { protocol: scheme, host, port }: Upstream,
  { interception }: Config,
  { lookup }: CheckContext,
): Destination {
  const isTls = scheme === 'https';
  // If clear text may be h2c, a connection that comes over TLS leaves as h2.
  const isHttp2 = protocol === 'h2' || protocol === 'h2c';
  return {
    protocol: scheme,
    host,
    port,
    tls,
    offers: protocol === 'http1' ? ['http/1.1'] : isHttp2 ? ['h2'] : ['h2', 'http/1.1'],
    speaks: isHttp2 ? (isTls ? 'h2' : 'h2c') : protocol,
    ...(egressProxy === undefined || !isTls ? {} : { egressProxy }),
    withinMs: timeouts.connectMs,
    ...(lookup === undefined ? {} : { lookup }),
    ...(interception === undefined ? {} : { trustDirectory: interception.directory }),
  };
}
