/** The gateway: TLS in front of the data path, for callers of other pods that prove who they are. */

import { constants } from 'node:crypto';
import { totalmem } from 'node:os';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { ServiceAccountVerifier } from '../callers/service-account-verifier.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { ClientVerification } from '../platform/tls/certificate-files.ts';
import type { CertificateSource, ServingCertificate } from '../platform/tls/serving-certificate.ts';
import { certificatesIn } from '../platform/x509/pem.ts';
import type { AppContext } from '../proxy/app/connection.ts';
import {
  connectionsInMemory,
  memoryLimit,
  mostConnections,
  processLimits,
} from '../proxy/app/connection-limit.ts';
import type { Service } from '../proxy/app/listener.ts';
import { CallerGates } from './authorizer.ts';
import { CallerBounds } from './caller-bounds.ts';
import { CallerConnection } from './connection.ts';
import { HeldMemory } from './held-memory.ts';
import type { GatewayMetrics } from './metrics.ts';
import { UnauthenticatedConnections } from './unauthenticated-connections.ts';

/** Connections whose caller is not known yet, at once; fewer if few connections may be open. */
const MAX_UNAUTHENTICATED = 512;

/** One part may have at most the total divided by this. */
const PART_OF_ALL = 4;

/** Used if neither the system nor the configuration bounds connections. */
const MANY_CONNECTIONS = 16_384;

/**
 * One handshake, one caller: no renegotiation on an open connection, and no resumed session, as its certificate would
 * not be checked again.
 */
const SECURE_OPTIONS = constants.SSL_OP_NO_RENEGOTIATION | constants.SSL_OP_NO_TICKET;

interface GatewayOptions {
  readonly certificate: CertificateSource;
  /** Absent if certificates do not prove callers. */
  readonly clients: Pick<ClientVerification, 'authorities' | 'onChange'> | undefined;
  /** Absent if tokens do not prove callers. */
  readonly tokens: Pick<ServiceAccountVerifier, 'known' | 'verify'> | undefined;
  readonly metrics: GatewayMetrics;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Gateway {
  /** How connections to the gateway's address are served. */
  readonly connectionHandler: (context: AppContext) => Service;
  /** Callers that are remembered. */
  remembered(): number;
  close(): void;
}

export function createGateway({
  certificate,
  clients,
  tokens,
  metrics,
  clock,
  log,
}: GatewayOptions): Gateway {
  const limitBytes = memoryLimit(process.constrainedMemory(), totalmem());
  const inMemory = connectionsInMemory(limitBytes);
  const held = new HeldMemory({
    limitBytes,
    residentBytes: () => process.memoryUsage.rss(),
    clock,
    log,
    onEnded: () => metrics.connection('held_too_much'),
  });
  const possible = mostConnections(inMemory, processLimits());
  let configured: () => number | undefined = () => undefined;
  /** A share of the bound in use. */
  const share = (): number => {
    const most = Math.min(possible, configured() ?? Number.POSITIVE_INFINITY);
    return Math.max(1, Math.floor((Number.isFinite(most) ? most : MANY_CONNECTIONS) / PART_OF_ALL));
  };
  const bounds = new CallerBounds(clock, share);
  const unauthenticated = new UnauthenticatedConnections(
    () => Math.min(MAX_UNAUTHENTICATED, share()),
    (address) => {
      metrics.connection('displaced');
      log.warn({ address }, 'a connection was ended: there are too many without a known caller');
    },
  );
  const authoritiesNow = (): string => clients?.authorities() ?? '';
  let trusted = fingerprintsOf(authoritiesNow());
  let secureContext = contextOf(certificate.current(), authoritiesNow());

  function renew(): void {
    const authorities = authoritiesNow();
    secureContext = contextOf(certificate.current(), authorities);
    trusted = fingerprintsOf(authorities);
  }
  const stops = [certificate.onChange(renew), clients?.onChange(renew)];

  const gates = new CallerGates({
    bounds,
    metrics,
    tokens,
    trusts: (fingerprints) => fingerprints.every((fingerprint) => trusted.has(fingerprint)),
    clock,
    log,
  });
  return {
    connectionHandler(context) {
      configured = () => context.generation().limits.maxConnections;
      return {
        what: 'gateway.listen',
        clear: false,
        mostConnections: possible,
        open(accepted, onFree) {
          const known = unauthenticated.admit(accepted.remoteAddress ?? '', () => accepted.destroy());
          const connection = new CallerConnection(accepted, {
            context,
            secureContext,
            asksForCertificate: clients !== undefined,
            authorities: trusted,
            gates,
            onResult: (result) => metrics.connection(result),
            known,
            onFree,
          });
          accepted.once('close', held.add(connection));
          return connection;
        },
      };
    },
    remembered: () => bounds.size,
    close() {
      held.close();
      for (const stop of stops) stop?.();
    },
  };
}

/** @throws if TLS rejects them, which their sources check before offering them. */
function contextOf(certificate: ServingCertificate | undefined, authorities: string): SecureContext {
  return createSecureContext({
    ...(certificate === undefined ? {} : { cert: certificate.cert, key: certificate.key }),
    // Public roots vouch for no caller.
    ca: authorities === '' ? [] : authorities,
    minVersion: 'TLSv1.2',
    secureOptions: SECURE_OPTIONS,
  });
}

function fingerprintsOf(pem: string): ReadonlySet<string> {
  return new Set(certificatesIn(pem).map(({ fingerprint256 }) => fingerprint256));
}
