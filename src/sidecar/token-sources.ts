import type { LookupFunction } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { CredentialConfig } from '../config/config.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { CredentialsMetrics } from '../platform/mounted/metrics.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { CertificateMetrics } from '../platform/x509/certificate-metrics.ts';
import { type LiveCredentials, openLiveCredentials } from '../token/credentials.ts';
import type { GrantTracer } from '../token/grant-report.ts';
import { exchangesForRequests } from '../token/grants/grants.ts';
import type { TokenMetrics } from '../token/metrics.ts';
import { createTokenEndpoint } from '../token/provider/token-endpoint.ts';
import type { SharedTokens } from '../token/shared-tokens.ts';
import { openTokenSource, type TokenSource } from '../token/token-source.ts';

interface TokenSourcesOptions {
  readonly clock: Clock;
  /** Numbers in [0, 1) for jitter. */
  readonly random: () => number;
  readonly metrics: TokenMetrics;
  readonly credentialsMetrics: CredentialsMetrics;
  readonly certificateMetrics: CertificateMetrics;
  readonly log: Logger;
  /** Where replicas keep tokens; absent: each requests its own. */
  readonly sharedTokens?: (config: CredentialConfig) => SharedTokens;
  /** For providers' names; absent: the system's. */
  readonly lookup: LookupFunction | undefined;
  /** Absent: grants are not traced. */
  readonly tracer?: GrantTracer | undefined;
}

export interface OpenCredential {
  readonly config: CredentialConfig;
  readonly source: TokenSource;
}

/** Without a notification. */
const SECRET_POLL_MS = 30_000;

export class TokenSources {
  readonly #options: TokenSourcesOptions;
  readonly #open = new Map<TokenSource, ActiveGauges>();

  constructor(options: TokenSourcesOptions) {
    this.#options = options;
  }

  /**
   * New sources have begun their first grants. If one cannot be opened, the new ones are closed.
   * @param inUse sources that are kept where the credential is unchanged.
   */
  async open(
    credentials: readonly CredentialConfig[],
    inUse: readonly OpenCredential[] = [],
  ): Promise<readonly OpenCredential[]> {
    const fresh: TokenSource[] = [];
    const opening = credentials.map(async (config): Promise<OpenCredential> => {
      const same = inUse.find((one) => isSameCredential(one.config, config));
      if (same !== undefined) return { config, source: same.source };
      const source = await this.#openOne(config);
      fresh.push(source);
      return { config, source };
    });
    try {
      return await Promise.all(opening);
    } catch (error) {
      await Promise.allSettled(opening);
      await this.close(fresh);
      throw error;
    }
  }

  /** From now on the gauges show these. */
  show(inUse: readonly OpenCredential[]): void {
    for (const { source } of inUse) {
      this.#options.metrics.observe(source.name, () => source.snapshot());
      for (const [other, gauges] of this.#open) if (other.name === source.name) gauges.hide();
      this.#open.get(source)?.show();
    }
  }

  async close(sources: Iterable<TokenSource> = [...this.#open.keys()]): Promise<void> {
    await Promise.all(
      [...sources].map(async (source) => {
        this.#open.delete(source);
        await source.close();
      }),
    );
  }

  async #openOne(config: CredentialConfig): Promise<TokenSource> {
    const { clock, credentialsMetrics, certificateMetrics } = this.#options;
    const gauges = new ActiveGauges(credentialsMetrics, certificateMetrics);
    const credentials = await openLiveCredentials(config, { clock, pollMs: SECRET_POLL_MS });
    try {
      const source = await this.#openSource(config, credentials, gauges);
      this.#open.set(source, gauges);
      return source;
    } catch (error) {
      credentials.close();
      throw error;
    }
  }

  async #openSource(
    config: CredentialConfig,
    credentials: LiveCredentials,
    gauges: ActiveGauges,
  ): Promise<TokenSource> {
    const { clock, random, metrics, log, lookup, tracer } = this.#options;
    const parts = {
      config,
      credentials,
      endpoint: createTokenEndpoint(config, clock, lookup, undefined, gauges.certificates),
      clock,
      metrics: { ...metrics, observe: () => undefined },
      credentialsMetrics: gauges.credentials,
      log,
      // No provider is asked for a mounted token.
      tracer: config.grant?.type === 'static' ? undefined : tracer,
    };
    return exchangesForRequests(config)
      ? (await import('../token/exchange/subject-source.ts')).openSubjectSource(parts)
      : openTokenSource({ ...parts, random, shared: this.#options.sharedTokens?.(config) });
  }
}

/** Outputs do not change how a token is obtained. */
function isSameCredential(one: CredentialConfig, other: CredentialConfig): boolean {
  return isDeepStrictEqual({ ...one, output: undefined }, { ...other, output: undefined });
}

/** Gauges show only while their source is in use, since another may have its name. */
class ActiveGauges {
  readonly credentials: CredentialsMetrics;
  readonly certificates: CertificateMetrics;
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
