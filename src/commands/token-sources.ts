/** What keeps the tokens of a configuration alive, and goes on doing so for the next one where a credential is the same. */

import type { LookupFunction } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../clock.ts';
import type { CredentialConfig } from '../config/config.ts';
import type { CredentialsMetrics } from '../credentials/metrics.ts';
import type { Logger } from '../log/logger.ts';
import type { GrantTracer } from '../token/grant-tracer.ts';
import { exchangesForRequests } from '../token/grants/token-exchange.ts';
import { type LiveCredentials, openLiveCredentials } from '../token/live-credentials.ts';
import type { TokenMetrics } from '../token/metrics.ts';
import { createTokenEndpoint } from '../token/provider/token-endpoint.ts';
import type { SharedTokens } from '../token/shared-tokens.ts';
import { openTokenSource, type TokenSource } from '../token/token-source.ts';
import type { CertificateMetrics } from '../x509/certificate-metrics.ts';
import { ShownGauges } from './shown-gauges.ts';

export interface TokenSourcesOptions {
  readonly clock: Clock;
  /** Numbers in [0, 1) for jitter. */
  readonly random: () => number;
  readonly metrics: TokenMetrics;
  readonly credentialsMetrics: CredentialsMetrics;
  readonly certificateMetrics: CertificateMetrics;
  readonly log: Logger;
  /** Where others keep the tokens of a credential; each asks by itself when absent. */
  readonly sharedTokens?: (config: CredentialConfig) => SharedTokens;
  /** Finds the names of providers; the system's when absent. */
  readonly lookup: LookupFunction | undefined;
  /** Absent where grants are not traced. */
  readonly tracer?: GrantTracer | undefined;
}

/** A credential and what keeps its token alive. */
export interface OpenCredential {
  readonly config: CredentialConfig;
  readonly source: TokenSource;
}

/** How often the Secret is read whether or not a notification came. */
const SECRET_POLL_MS = 30_000;

export class TokenSources {
  readonly #options: TokenSourcesOptions;
  /** All that are not closed, in use or not. */
  readonly #open = new Map<TokenSource, ShownGauges>();

  constructor(options: TokenSourcesOptions) {
    this.#options = options;
  }

  /**
   * One for each credential, in this order. The first grants of those that are new are on their way. Where one cannot be opened,
   * none of those that are new is.
   * @param inUse those that stay as they are where the credential is the same.
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

  /** The gauges show these from now on. */
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
    // What is not in use yet may bear the name of what is.
    const gauges = new ShownGauges(credentialsMetrics, certificateMetrics);
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
    gauges: ShownGauges,
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
      // Nobody is asked for a token that is mounted.
      tracer: config.grant?.type === 'static' ? undefined : tracer,
    };
    return exchangesForRequests(config)
      ? (await import('../token/exchange/subject-source.ts')).openSubjectSource(parts)
      : openTokenSource({ ...parts, random, shared: this.#options.sharedTokens?.(config) });
  }
}

/** Where the token is handed out beside the proxy does not matter to how it is obtained. */
function isSameCredential(one: CredentialConfig, other: CredentialConfig): boolean {
  return isDeepStrictEqual({ ...one, output: undefined }, { ...other, output: undefined });
}
