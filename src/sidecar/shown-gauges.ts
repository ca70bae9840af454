import type { CredentialsMetrics } from '../platform/mounted/metrics.ts';
import type { CertificateMetrics } from '../platform/x509/certificate-metrics.ts';

/** One credential's gauges, which show only while its source is in use: another source in use may have the same name. */
export class ShownGauges {
  readonly credentials: CredentialsMetrics;
  readonly certificates: CertificateMetrics;
  /** The latest value of each gauge, to be set when they show. */
  readonly #held = new Map<string, () => void>();
  #shows = false;

  constructor(credentials: CredentialsMetrics, certificates: CertificateMetrics) {
    this.credentials = {
      reloaded: (name, result) => credentials.reloaded(name, result),
      loaded: (name, atMs) => this.#say('loaded', () => credentials.loaded(name, atMs)),
      watched: (name, byNotification) =>
        this.#say('watched', () => credentials.watched(name, byNotification)),
    };
    this.certificates = {
      inUse: (user, file, role, pem) =>
        this.#say(`file ${file}`, () => certificates.inUse(user, file, role, pem)),
    };
  }

  show(): void {
    this.#shows = true;
    for (const say of this.#held.values()) say();
    this.#held.clear();
  }

  hide(): void {
    this.#shows = false;
  }

  #say(what: string, say: () => void): void {
    if (this.#shows) say();
    else this.#held.set(what, say);
  }
}
