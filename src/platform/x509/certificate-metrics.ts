import { createHash, type X509Certificate } from 'node:crypto';
import { LruMap } from '../limits/lru-map.ts';
import type { Logger } from '../log/logger.ts';
import { Gauge, type Registry } from '../prometheus.ts';
import { nextTurn } from '../time/async.ts';
import { blocksOf, certificatesIn } from './pem.ts';

type CertificateUser = { readonly route: string } | { readonly credential: string };

export interface CertificateMetrics {
  /**
   * @param file its key in a mounted Secret, or its setting.
   * @param role an identity expires with the first certificate, trust with the last.
   * @param pem one certificate or several.
   */
  inUse(user: CertificateUser, file: string, role: 'identity' | 'trust', pem: string): void;
}

interface FileInUse {
  readonly user: CertificateUser;
  readonly file: string;
  readonly role: 'identity' | 'trust';
  readonly pem: string;
}

/** Unparsable certificates are no fault. */
type OnUnread = (error: unknown, of: CertificateUser, file: string) => void;

/** Once per registry. */
export function createCertificateMetrics(registry: Registry, onUnread: OnUnread): CertificateMetrics {
  const labelNames = ['route', 'credential', 'file'];
  const reader = new ValidityReader();
  /** Each once. */
  const waiting = new Map<string, FileInUse>();
  let reading: Promise<void> | undefined;

  /** Never rejects. */
  async function readWaiting(): Promise<void> {
    for (const [key, one] of waiting) {
      await nextTurn();
      try {
        await read(key, one);
      } catch (error) {
        if (waiting.get(key) === one) waiting.delete(key);
        onUnread(error, one.user, one.file);
      }
    }
    reading = undefined;
  }

  async function read(key: string, one: FileInUse): Promise<void> {
    const { user, file, role, pem } = one;
    const validity = await reader.read(pem);
    if (waiting.get(key)?.pem !== pem) return;
    waiting.delete(key);
    if (validity === undefined) return;
    const decisive = role === 'identity' ? validity.first : validity.last;
    ends.set({ ...user, file }, decisive.endsAtMs / 1000);
    begins.set({ ...user, file }, decisive.fromMs / 1000);
  }

  const ends = new Gauge({
    name: 'token_sidecar_tls_certificate_expiry_timestamp_seconds',
    help: 'Unix time at which a file of certificates that is in use ends: the first of a chain, the last of a list of authorities.',
    labelNames,
    registers: [registry],
    collect: () => reading,
  });
  const begins = new Gauge({
    name: 'token_sidecar_tls_certificate_not_before_timestamp_seconds',
    help: 'Unix time from which that certificate is valid.',
    labelNames,
    registers: [registry],
    collect: () => reading,
  });
  return {
    inUse(user, file, role, pem) {
      const key = JSON.stringify([user, file]);
      waiting.delete(key);
      waiting.set(key, { user, file, role, pem });
      reading ??= readWaiting();
    },
  };
}

/** Logs a file whose validity cannot be read, and drops its series. */
export function loggedCertificateMetrics(registry: Registry, log: Logger): CertificateMetrics {
  return createCertificateMetrics(registry, (err, user, file) =>
    log.error({ ...user, file, err }, 'how long a file of certificates is valid could not be read'),
  );
}

interface Validity {
  readonly fromMs: number;
  readonly endsAtMs: number;
}

interface BundleValidity {
  readonly first: Validity;
  readonly last: Validity;
}

/** A few milliseconds. */
const CERTIFICATES_AT_ONCE = 20;

/** Routes share a few. */
const MAX_BUNDLES = 64;

export class ValidityReader {
  readonly #known = new LruMap<string, BundleValidity | 'unstated'>({ max: MAX_BUNDLES });

  /** Undefined if no certificate states it. One call at a time. */
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
