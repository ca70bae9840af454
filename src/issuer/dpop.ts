/** Whether a request proves that its sender has a key (RFC 9449), and the nonces that it may need for it. */

import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';
import type { Clock } from '../platform/time/clock.ts';
import type { Client } from './clients.ts';
import { ProofFault, readProof } from './dpop-proof.ts';
import type { KeyRing, SigningKey } from './keys.ts';
import type { IssuerMetrics } from './metrics.ts';
import { Refusal } from './refusal.ts';
import { UsedProofs } from './used-proofs.ts';

interface DpopOptions {
  /** As clients know it. */
  readonly tokenUrl: string;
  readonly demandsNonces: boolean;
  readonly keys: Pick<KeyRing, 'current'>;
  readonly metrics: Pick<IssuerMetrics, 'proofRefused'>;
  readonly clock: Clock;
}

export interface ProvenKey {
  /** RFC 7638, for the claim `cnf`. */
  readonly thumbprint: string;
  /** The one to use from now on, if it is another. */
  readonly nextNonce?: string;
}

/** @returns undefined if there is no proof, and none is demanded of this client. */
export type DpopVerification = (
  fields: readonly string[],
  client: Client,
) => Promise<ProvenKey | Refusal | undefined>;

/** From the proof to its check: the request may have waited for scrypt, and clocks differ. */
const MAX_AGE_SECONDS = 60;
/** Clocks that a time server sets differ by less. */
const MAX_AHEAD_SECONDS = 10;

export function createDpopVerification(options: DpopOptions): DpopVerification {
  const { clock, metrics } = options;
  const nonces = options.demandsNonces ? createNonces(options.keys, clock) : undefined;
  const used = new UsedProofs(
    nonces === undefined ? (MAX_AGE_SECONDS + MAX_AHEAD_SECONDS) * 1000 : nonces.lifetimeMs,
  );

  return async (fields, client) => {
    if (fields.length === 0 && client.dpopBoundAccessTokens !== true) return undefined;
    const proven = await prove(fields, client.clientId);
    if (!(proven instanceof ProofFault)) return proven;
    const { reason, description } = proven;
    metrics.proofRefused(reason);
    if (reason !== 'nonce') return new Refusal('invalid_dpop_proof', description);
    return new Refusal('use_dpop_nonce', description, undefined, nonces?.current());
  };

  async function prove(fields: readonly string[], client: string): Promise<ProvenKey | Refusal | ProofFault> {
    const [field] = fields;
    if (field === undefined) return new ProofFault('missing', 'the client must send a DPoP proof');
    if (fields.length > 1) return new ProofFault('repeated', 'the DPoP header is given more than once');
    const { wallMs, monotonicMs } = clock.now();
    const proof = await readProof(field, { tokenUrl: options.tokenUrl, nowMs: wallMs });
    if (proof instanceof ProofFault) return proof;
    // With nonces, only their time counts (§4.3 number 11), so that a wrong clock does no harm.
    const fault = nonces === undefined ? timeFault(proof.issuedAt, wallMs) : nonces.faultOf(proof.nonce);
    if (fault !== undefined) return fault;
    const thumbprint = await calculateJwkThumbprint(proof.jwk);
    switch (used.use(client, thumbprint, proof.tokenId, monotonicMs)) {
      case 'used_before':
        return new ProofFault('replay', 'a DPoP proof with this jti has been used');
      case 'full':
        return TOO_MANY;
      case 'used_now': {
        const nextNonce = nonces?.current();
        return { thumbprint, ...(nextNonce === proof.nonce || nextNonce === undefined ? {} : { nextNonce }) };
      }
    }
  }
}

const TOO_MANY = new Refusal(
  'temporarily_unavailable',
  'the client has sent too many DPoP proofs of late',
  1,
);

function timeFault(issuedAt: number, wallMs: number): ProofFault | undefined {
  const age = wallMs / 1000 - issuedAt;
  if (age <= MAX_AGE_SECONDS && age >= -MAX_AHEAD_SECONDS) return undefined;
  const where = age > 0 ? `${MAX_AGE_SECONDS} s in the past` : `${MAX_AHEAD_SECONDS} s in the future`;
  return new ProofFault('time', `the iat of the DPoP proof may be at most ${where}`);
}

const NONCE_STEP_MS = 30_000;
/** So a nonce lives for a minute at least. A replica's clock may be ahead of this one's. */
const ACCEPTED_STEPS = [0, -1, -2, 1];

interface Nonces {
  /** How long one can be accepted. */
  readonly lifetimeMs: number;
  current(): string;
  faultOf(nonce: string | undefined): ProofFault | undefined;
}

/** Nothing is kept of them: replicas share them as they share the signing key, restarts included. */
function createNonces(keys: Pick<KeyRing, 'current'>, clock: Clock): Nonces {
  const secrets = new WeakMap<SigningKey, Buffer>();

  function secret(): Buffer {
    const key = keys.current();
    const known = secrets.get(key);
    if (known !== undefined) return known;
    const der = key.privateKey.export({ type: 'pkcs8', format: 'der' });
    const derived = Buffer.from(hkdfSync('sha256', der, '', 'token-sidecar DPoP nonce', 32));
    secrets.set(key, derived);
    return derived;
  }

  function nonceAfter(steps: number): string {
    const step = Math.floor(clock.now().wallMs / NONCE_STEP_MS) + steps;
    return createHmac('sha256', secret()).update(String(step)).digest('base64url');
  }

  return {
    lifetimeMs: ACCEPTED_STEPS.length * NONCE_STEP_MS,
    current: () => nonceAfter(0),
    faultOf(nonce) {
      if (nonce === undefined) return new ProofFault('nonce', 'the DPoP proof must have a nonce');
      const given = Buffer.from(nonce);
      const isKnown = ACCEPTED_STEPS.map((steps) => Buffer.from(nonceAfter(steps))).some(
        (accepted) => accepted.length === given.length && timingSafeEqual(accepted, given),
      );
      return isKnown ? undefined : new ProofFault('nonce', 'the nonce of the DPoP proof is too old');
    },
  };
}
