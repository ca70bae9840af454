/** From when and until when the certificates of a PEM bundle are valid: read in parts, and once per content. */

import { createHash, type X509Certificate } from 'node:crypto';
import { nextTurn } from '../time/next-turn.ts';
import { blocksOf, certificatesIn } from './pem.ts';

interface Validity {
  readonly fromMs: number;
  readonly endsAtMs: number;
}

/** The certificates of one bundle that expire first and last. */
interface BundleValidity {
  readonly first: Validity;
  readonly last: Validity;
}

/** Certificates parsed in one turn of the event loop: a few milliseconds. */
export const CERTIFICATES_AT_ONCE = 20;

/** Bundles whose outcome is remembered: routes share a few, which are read again whenever connections are made anew. */
export const MOST_BUNDLES = 64;

export class ValidityReader {
  /** By the hash of the bundle, the latest last. */
  readonly #known = new Map<string, BundleValidity | undefined>();

  /** Undefined if no certificate states it: the file's user reports what is wrong with it. One call at a time. */
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

/** Empty if it cannot be told. */
function validityOf({ validFromDate, validToDate }: X509Certificate): Validity[] {
  const validity = { fromMs: validFromDate.getTime(), endsAtMs: validToDate.getTime() };
  return Object.values(validity).every(Number.isFinite) ? [validity] : [];
}
