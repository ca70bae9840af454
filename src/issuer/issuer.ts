import { randomUUID } from 'node:crypto';
import type { JSONWebKeySet } from 'jose';
import type { Logger } from '../platform/log/logger.ts';
import { formatAddress, type ListenAddress, reachableAddress } from '../platform/net/address.ts';
import type { Clock } from '../platform/time/clock.ts';
import { createCallerVerification } from './caller-verification.ts';
import type { ClientStore } from './clients.ts';
import { createDpopVerification } from './dpop.ts';
import type { KeyRing } from './keys.ts';
import type { IssuerMetrics } from './metrics.ts';
import { createDerivationQueue, deriveScrypt, type ScryptDerivation } from './secret-hashing.ts';
import { DEFAULT_LIMITS, startTokenListener, type TokenListenerLimits } from './token-listener.ts';
import { createTokenService } from './token-service.ts';

interface IssuerOptions {
  readonly listen: ListenAddress;
  /** Part of `iss` and of the served path. The listener's by default. */
  readonly authUrl?: URL;
  /** Needs no escaping in a path or a quoted string. */
  readonly realm: string;
  readonly clients: ClientStore;
  readonly keys: KeyRing;
  /** For clients without their own. */
  readonly tokenLifetimeSeconds: number;
  /** In DPoP proofs. Not by default. */
  readonly demandsNonces?: boolean;
  readonly metrics: IssuerMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits?: Partial<TokenListenerLimits>;
  readonly derive?: ScryptDerivation;
}

export interface Issuer {
  /** With the port that the system picked for 0. */
  readonly address: ListenAddress;
  /** `{auth_url}/realms/{realm}` */
  readonly issuer: string;
  readonly tokenUrl: string;
  jwks(): JSONWebKeySet;
  /** Requests in flight get at most `timeoutMs`. Safe to call again. */
  close(timeoutMs?: number): Promise<void>;
}

/** Two cores, and seven seconds of waiting: most callers give up after ten. */
const DERIVATION_LIMITS = { concurrent: 2, waiting: 64 };

/** @throws {SidecarError} `configuration` if the address cannot be listened on. */
export async function startIssuer(options: IssuerOptions): Promise<Issuer> {
  const { realm, keys, clock, log, metrics } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const queue = createDerivationQueue(options.derive ?? deriveScrypt, DERIVATION_LIMITS);
  const issuerAt = (address: ListenAddress): string => {
    const base = options.authUrl?.href ?? `http://${formatAddress(reachableAddress(address))}`;
    return `${base.replace(/\/+$/, '')}/realms/${realm}`;
  };

  const listener = await startTokenListener({
    listen: options.listen,
    limits,
    endpointAt(address) {
      const issuer = issuerAt(address);
      return createTokenService({
        path: new URL(tokenUrlOf(issuer)).pathname,
        realm,
        issuer,
        authenticate: createCallerVerification(options.clients, queue, { clock, log }),
        verifyDpop: createDpopVerification({
          tokenUrl: tokenUrlOf(issuer),
          demandsNonces: options.demandsNonces ?? false,
          keys,
          metrics,
          clock,
        }),
        keys,
        tokenLifetimeSeconds: options.tokenLifetimeSeconds,
        maxBodyBytes: limits.bodyBytes,
        metrics,
        clock,
        log,
        tokenId: randomUUID,
      });
    },
    metrics,
    clock,
    log,
  });
  const issuer = issuerAt(listener.address);
  return {
    address: listener.address,
    issuer,
    tokenUrl: tokenUrlOf(issuer),
    jwks: keys.jwks,
    close: (timeoutMs = 5000) => listener.close(timeoutMs),
  };
}

function tokenUrlOf(issuer: string): string {
  return `${issuer}/protocol/openid-connect/token`;
}
