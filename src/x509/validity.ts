/** Between when and when the certificates of a PEM bundle are valid: read in parts, and once for each content. */

import { createHash, type X509Certificate } from 'node:crypto';
import { nextTurn } from '../next-turn.ts';
import { blocksOf, certificatesIn } from './pem.ts';

export interface Validity {
  readonly fromMs: number;
  readonly endsAtMs: number;
}

/** Of the certificates of one bundle, the one that ends first and the one that ends last. */
export interface BundleValidity {
  readonly first: Validity;
  readonly last: Validity;
}

/** Certificates that are parsed in one turn of the event loop: a few milliseconds. */
export const CERTIFICATES_AT_ONCE = 20;

/** Bundles whose outcome is remembered: routes share a few, which are read again whenever connections are made anew. */
export const MOST_BUNDLES = 64;

export class ValidityReader {
  /** By the hash of what they were read of, the latest last. */
  readonly #known = new Map<string, BundleValidity | undefined>();

  /** Undefined where no certificate says it: whoever uses the file says what is wrong with it. One call at a time. */
  async read(pem: string): Promise<BundleValidity | undefined> {
    const hash = createHash('sha256').update(pem).digest('base64');
    const isKnown = this.#known.has(hash);
    const validity = isKnown ? this.#known.get(hash) : await readBundle(pem);
    this.#known.delete(hash);
    this.#known.set(hash, validity);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST_BUNDLES && oldest !== undefined) this.#known.delete(oldest);
    return validity;
  }
}

async function readBundle(pem: string): Promise<BundleValidity | undefined> {
  const blocks = blocksOf(pem);
  let validity: BundleValidity | undefined;
  for (let at = 0; at < blocks.length; at += CERTIFICATES_AT_ONCE) {
    await nextTurn();
    const part = blocks.slice(at, at + CERTIFICATES_AT_ONCE).join('');
    for (const one of certificatesIn(part).flatMap(validityOf)) {
      const { first, last } = validity ?? { first: one, last: one };
      validity = {
        first: one.endsAtMs < first.endsAtMs ? one : first,
        last: one.endsAtMs < last.endsAtMs ? last : one,
      };
    }
  }
  return validity;
}

/** Empty where it cannot be told. */
function validityOf({ validFromDate, validToDate }: X509Certificate): Validity[] {
  const validity = { fromMs: validFromDate.getTime(), endsAtMs: validToDate.getTime() };
  return Object.values(validity).every(Number.isFinite) ? [validity] : [];
}
