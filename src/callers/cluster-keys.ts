/**
 * The keys that the cluster signs service account tokens with, by OpenID Connect discovery from the API server
 * (KEP-1393). Both documents are read from the API server itself, over the connection that is trusted anyway:
 * `jwks_uri` may lead to a bucket that this pod cannot reach.
 */

import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import * as v from 'valibot';
import type { KubernetesApi } from '../platform/kubernetes/api.ts';
import type { Logger } from '../platform/log/logger.ts';
import { type BackoffOptions, backoffMs, pause } from '../platform/time/async.ts';
import { elapsedMs, type Instant } from '../platform/time/clock.ts';

export interface KeySet {
  readonly issuer: string;
  readonly find: JWTVerifyGetKey;
}

export type NewestKeys =
  | {
      readonly kind: 'read';
      readonly set: KeySet;
      /** Present if the reading began before this request: a key missing from it may be newer, and may be read then. */
      readonly nextInMs?: number;
    }
  /** They cannot be read, or were read a moment ago: the key may be newer than that. */
  | { readonly kind: 'unavailable'; readonly retryAfterMs: number };

export interface ClusterKeys {
  /** Undefined until they have been read once. The last reading stays while the API server is away. */
  current(): KeySet | undefined;
  /** For a token with an unknown key. */
  newest(): Promise<NewestKeys>;
  close(): void;
}

interface ClusterKeysOptions extends BackoffOptions {
  readonly log: Logger;
}

/** A removed key goes out of use after this at the latest, while the API server answers. */
const READ_EVERY_MS = 300_000;

/** Tokens with unknown keys cost the API server at most one reading in this time. */
const READINGS_APART_MS = 10_000;

const TIMEOUT_MS = 5000;

/** Keys that could not be read may be there soon: they are retried automatically. */
const ASK_SOON_MS = 1000;

const discovery = v.object({ issuer: v.pipe(v.string(), v.nonEmpty()) });

/** The keys in a set that verify: a symmetric one does not belong there. */
const keys = v.object({
  keys: v.pipe(
    v.array(v.looseObject({ kty: v.string(), kid: v.optional(v.string()) })),
    v.maxLength(100),
    v.transform((all) =>
      all.filter(({ kty, kid }) => ['RSA', 'EC'].includes(kty) && kid !== undefined && kid !== ''),
    ),
    v.minLength(1),
  ),
});

/** A token without a key id would be tried with any key that fits. Clusters always set it. */
function findByName(set: JSONWebKeySet): JWTVerifyGetKey {
  const find = createLocalJWKSet(set);
  return async (header, jws) => {
    if (typeof header.kid !== 'string') throw new errors.JWKSNoMatchingKey();
    return await find(header, jws);
  };
}

export function followClusterKeys(api: KubernetesApi, options: ClusterKeysOptions): ClusterKeys {
  const { clock, random, log } = options;
  const abort = new AbortController();
  let current: KeySet | undefined;
  let known = '';
  /** When the last reading began, and whether it succeeded. */
  let last: { readonly at: Instant; readonly succeeded: boolean } | undefined;
  let reading: Promise<boolean> | undefined;

  function read(): Promise<boolean> {
    reading ??= readOnce().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  async function readOnce(): Promise<boolean> {
    const at = clock.now();
    try {
      const [document, set] = await Promise.all([
        api.request('GET', '/.well-known/openid-configuration', { timeoutMs: TIMEOUT_MS }),
        api.request('GET', '/openid/v1/jwks', {
          timeoutMs: TIMEOUT_MS,
          accept: 'application/jwk-set+json, application/json',
        }),
      ]);
      const { issuer } = v.parse(discovery, document);
      const valid = v.parse(keys, set) as JSONWebKeySet;
      const read = JSON.stringify([issuer, valid]);
      if (read !== known) {
        current = { issuer, find: findByName(valid) };
        known = read;
        log.info({ issuer, keys: valid.keys.length }, "the cluster's keys are loaded");
      }
      last = { at, succeeded: true };
      return true;
    } catch (error) {
      log.warn({ err: error }, "the cluster's keys cannot be read, the last ones stay");
      // Counted from its end: it may have taken the full timeout.
      last = { at: clock.now(), succeeded: false };
      return false;
    }
  }

  async function run(): Promise<void> {
    for (let failures = 0; !abort.signal.aborted; ) {
      failures = (await read()) ? 0 : failures + 1;
      // Everybody waits for the first ones; later ones can keep to the schedule.
      const delayMs =
        failures === 0 ? READ_EVERY_MS : backoffMs(current === undefined ? 1 : failures, random);
      await pause(clock, delayMs, abort.signal);
    }
  }

  function sinceLastMs(): number {
    return last === undefined ? READINGS_APART_MS : elapsedMs(last.at, clock.now());
  }

  void run();
  return {
    current: () => current,
    async newest() {
      const sinceMs = sinceLastMs();
      if (last?.succeeded === true && sinceMs < READINGS_APART_MS) {
        return { kind: 'unavailable', retryAfterMs: READINGS_APART_MS - sinceMs };
      }
      const hasBegun = reading !== undefined;
      const succeeded = sinceMs >= READINGS_APART_MS && (await read());
      if (!succeeded || current === undefined) return { kind: 'unavailable', retryAfterMs: ASK_SOON_MS };
      const nextInMs = Math.max(ASK_SOON_MS, READINGS_APART_MS - sinceLastMs());
      return { kind: 'read', set: current, ...(hasBegun ? { nextInMs } : {}) };
    },
    close: () => abort.abort(),
  };
}
