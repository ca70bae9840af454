import { X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { RouteConfig, TlsConfig } from '../../config/config.ts';
import { messageOf, SidecarError } from '../../platform/errors.ts';
import { MAX_PEM_BYTES, readBoundedFile, readBoundedFileSync } from '../../platform/files/bounded-file.ts';
import type { Logger } from '../../platform/log/logger.ts';
import type { Clock } from '../../platform/time/clock.ts';
import type { UpstreamObserver } from '../observer.ts';

/** Certificates are renewed long before they expire. */
const LOOK_MS = 10_000;

const FILES = [
  ['caFile', 'ca'],
  ['certFile', 'cert'],
  ['keyFile', 'key'],
] as const;

/** PEM, by Node's name for it. */
type Material = Partial<Record<(typeof FILES)[number][1], string>>;

interface UpstreamTlsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Other certificates or another key come into use. */
  onChange(): void;
  readonly observer: Pick<UpstreamObserver, 'certificatesInUse'>;
}

/** Trust, identity and a session of one route; files are read again when they change. */
export class UpstreamTls {
  readonly #route: RouteConfig;
  readonly #options: UpstreamTlsOptions;
  #material: Material = {};
  #context: SecureContext | undefined;
  #session: Buffer | undefined;
  #cancelLook: (() => void) | undefined;
  #closed = false;

  /** @throws {SidecarError} `configuration` if a file cannot be read or its content is wrong. */
  constructor(route: RouteConfig, options: UpstreamTlsOptions) {
    this.#route = route;
    this.#options = options;
    const paths = pathsOf(route.tls);
    if (paths.length === 0) return;
    this.#material = Object.fromEntries(paths.map(([key, path, file]) => [key, this.#readNow(file, path)]));
    try {
      this.#context = contextOf(this.#material);
    } catch (error) {
      throw new SidecarError('configuration', `route ${route.name}: tls: ${messageOf(error)}`, {
        cause: error,
      });
    }
    this.#report();
    this.#lookLater();
  }

  get context(): SecureContext {
    // Loading the system's roots takes time.
    this.#context ??= contextOf(this.#material);
    return this.#context;
  }

  /** For resumption (RFC 8446 §2.2). */
  get session(): Buffer | undefined {
    return this.#session;
  }

  /** @param context a session made under another trust is not resumed. */
  remember(session: Buffer, context: SecureContext): void {
    if (context === this.#context) this.#session = session;
  }

  close(): void {
    this.#closed = true;
    this.#cancelLook?.();
  }

  #lookLater(): void {
    if (this.#closed) return;
    this.#cancelLook = this.#options.clock.after(LOOK_MS, () => {
      void this.#look().finally(() => this.#lookLater());
    });
  }

  async #look(): Promise<void> {
    try {
      const read = await Promise.all(
        pathsOf(this.#route.tls).map(async ([key, path]) => [
          key,
          await readBoundedFile(path, MAX_PEM_BYTES),
        ]),
      );
      const material: Material = Object.fromEntries(read);
      if (FILES.every(([, key]) => material[key] === this.#material[key])) return;
      // Throws until the next check finds both certificate and key changed.
      this.#context = contextOf(material);
      this.#material = material;
      this.#session = undefined;
      this.#report();
      this.#options.log.info({ route: this.#route.name }, 'TLS files changed: in use from now on');
      this.#options.onChange();
    } catch (error) {
      this.#options.log.warn(
        { route: this.#route.name, reason: messageOf(error) },
        'TLS files cannot be used: the ones read before stay in use',
      );
    }
  }

  #report(): void {
    const { ca, cert } = this.#material;
    if (ca !== undefined) this.#options.observer.certificatesInUse('caFile', ca);
    if (cert !== undefined) this.#options.observer.certificatesInUse('certFile', cert);
  }

  #readNow(file: keyof TlsConfig, path: string): string {
    try {
      return readBoundedFileSync(path, MAX_PEM_BYTES);
    } catch (error) {
      throw new SidecarError(
        'configuration',
        `route ${this.#route.name}: tls.${file} ${path} cannot be read: ${messageOf(error)}`,
        { cause: error },
      );
    }
  }
}

function pathsOf(tls: TlsConfig) {
  return FILES.flatMap(([file, key]) => {
    const path = tls[file];
    return path === undefined ? [] : [[key, path, file] as const];
  });
}

/** @throws {Error} if a part is wrong, or certificate and key do not match. */
function contextOf(material: Material): SecureContext {
  // Node takes a file without certificates for trust in nobody.
  if (material.ca !== undefined) new X509Certificate(material.ca);
  return createSecureContext({ ...material, minVersion: 'TLSv1.2' });
}
