import { Gauge, type Registry } from '../prometheus.ts';
import { nextTurn } from '../time/next-turn.ts';
import { ValidityReader } from './validity.ts';

/** The user of a file of certificates. */
type CertificateUser = { readonly route: string } | { readonly credential: string };

export interface CertificateMetrics {
  /**
   * A file is in use from now on.
   * @param file the name of its key, or of its key in a mounted Secret.
   * @param role an identity expires with the first certificate of its chain that does; trust with the last one named.
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

/** Called for a file whose validity could not be read because of a fault; unparsable certificates are no fault. */
type OnUnread = (error: unknown, of: CertificateUser, file: string) => void;

/**
 * Registers `token_sidecar_tls_certificate_expiry_timestamp_seconds` and `…_not_before_timestamp_seconds`; once per
 * registry.
 */
export function createCertificateMetrics(registry: Registry, onUnread: OnUnread): CertificateMetrics {
  const labelNames = ['route', 'credential', 'file'];
  const reader = new ValidityReader();
  /** The files still to be read, each once. */
  const waiting = new Map<string, FileInUse>();
  let reading: Promise<void> | undefined;

  /** Requests do not wait for it; scrapes do. Never rejects. */
  async function readWaiting(): Promise<void> {
    // Files added meanwhile come last in the map, and are read as well.
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
    // The file's content has changed meanwhile, and comes later.
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
    help: 'Unix time from which the certificate is valid whose end the expiry of its file is.',
    labelNames,
    registers: [registry],
    collect: () => reading,
  });
  return {
    inUse(user, file, role, pem) {
      const key = JSON.stringify([user, file]);
      // At the end of the line, wherever its older content stands.
      waiting.delete(key);
      waiting.set(key, { user, file, role, pem });
      reading ??= readWaiting();
    },
  };
}
