/** Tracks which CAs the API server trusts when it calls our webhooks, and for how long, as this replica has seen it. */

import { X509Certificate } from 'node:crypto';
import type { Clock } from '../../platform/time/clock.ts';
import { isIssuedBy } from '../../platform/tls/serving-certificate.ts';
import { splitPem } from './stored-certificates.ts';
import { type ConfigurationObject, caBundlesOf } from './webhook-trust.ts';

export interface TrustedAuthorities {
  /** The present state of a configuration; undefined while it does not exist. */
  saw(name: string, configuration: ConfigurationObject | undefined): void;
  /** Whether every configuration has been seen. */
  isKnown(): boolean;
  /** The trusted CAs that issued a certificate, PEM. */
  issuersOf(cert: string): readonly string[];
  /** How long every webhook has trusted a certificate's CA, ms; undefined if one does not. */
  trustedForMs(cert: string): number | undefined;
}

/** @param names of the configurations that have to trust a CA. */
export function trackTrustedAuthorities(names: readonly string[], clock: Clock): TrustedAuthorities {
  const seen = new Map<string, readonly (readonly string[])[]>();
  /** PEM of the CAs that all of them trust, and since when, in monotonic time. */
  const since = new Map<string, number>();

  function issuersOf(cert: string): readonly string[] {
    const leaf = new X509Certificate(cert);
    return [...since.keys()].filter((pem) => isIssuedBy(leaf, new X509Certificate(pem)));
  }

  return {
    saw(name, configuration) {
      seen.set(
        name,
        configuration === undefined ? [] : caBundlesOf(configuration).map((bundle) => splitPem(bundle)),
      );
      const [first = [], ...others] = [...seen.values()].flat();
      const common = first.filter((pem) => others.every((bundle) => bundle.includes(pem)));
      for (const pem of [...since.keys()]) if (!common.includes(pem)) since.delete(pem);
      for (const pem of common) if (!since.has(pem)) since.set(pem, clock.monotonicMs());
    },
    isKnown: () => names.every((name) => seen.has(name)),
    issuersOf,
    trustedForMs(cert) {
      const times = issuersOf(cert).map((pem) => since.get(pem) as number);
      return times.length === 0 ? undefined : clock.monotonicMs() - Math.min(...times);
    },
  };
}
