/** From when and until when the certificates of a PEM bundle are valid: read in parts, and once per content. */

import { createHash, type X509Certificate } from 'node:crypto';
import { LruMap } from '../limits/lru-map.ts';
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
export const MAX_BUNDLES = 64;

export class ValidityReader {
  /** By the hash of the bundle. */
  readonly #known = new LruMap<string, BundleValidity | 'unstated'>({ max: MAX_BUNDLES });

  /** Undefined if no certificate states it: the file's user reports what is wrong with it. One call at a time. */
  async read(pem: string): Promise<BundleValidity | undefined> {
    const hash = createHash('sha256').update(pem).digest('base64');
    const known = this.#known.get(hash);
    if (known !== undefined) return known === 'unstated' ? undefined : known;
    const validity = await readBundle(pem);
    this.#known.set(hash, validity ?? 'unstated');
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
