/** Tokens as files and by an endpoint. Loaded only if a credential asks for either. */

import type { Config } from '../config/config.ts';
import type { Logger } from '../platform/log/logger.ts';
import { formatAddress, type ListenAddress } from '../platform/net/address.ts';
import type { Registry } from '../platform/prometheus.ts';
import type { Clock } from '../platform/time/clock.ts';
import { startLocalEndpoint } from '../token/output/local-endpoint.ts';
import { createTokenFileMetrics, openTokenFile, type TokenFileTrouble } from '../token/output/token-file.ts';
import type { OpenCredential } from './token-sources.ts';

export interface Outputs {
  readonly address: ListenAddress | undefined;
  /** Files that could not be updated. */
  troubles(): readonly TokenFileTrouble[];
  follow(credentials: readonly OpenCredential[]): void;
  /** Takes the tokens back. Never rejects. */
  close(): Promise<void>;
}

/** @throws {SidecarError} `configuration` if a file cannot be written, or the listener cannot be opened. */
export async function openOutputs(
  { tokenEndpoint }: Pick<Config, 'tokenEndpoint'>,
  credentials: readonly OpenCredential[],
  { registry, clock, log }: { readonly registry: Registry; readonly clock: Clock; readonly log: Logger },
): Promise<Outputs> {
  const metrics = createTokenFileMetrics(registry);
  const files = new Map<string, Awaited<ReturnType<typeof openTokenFile>>>();
  let endpoint: Awaited<ReturnType<typeof startLocalEndpoint>> | undefined;
  const close = async () => {
    await Promise.all([...files.values(), endpoint].map((output) => output?.close()));
  };
  try {
    for (const { config, source } of credentials) {
      const file = config.output?.file;
      if (file !== undefined)
        files.set(source.name, await openTokenFile({ config: file, source, clock, metrics, log }));
    }
    if (tokenEndpoint !== undefined) {
      const { listen } = tokenEndpoint;
      endpoint = await startLocalEndpoint({ listen, tokens: givenOf(credentials), clock, log });
      log.info({ tokenEndpoint: formatAddress(endpoint.address) }, 'tokens are given to callers on loopback');
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    address: endpoint?.address,
    troubles: () => [...files.values()].flatMap((file) => file.trouble() ?? []),
    follow(next) {
      for (const { source } of next) files.get(source.name)?.follow(source);
      endpoint?.give(givenOf(next));
    },
    close,
  };
}

function givenOf(credentials: readonly OpenCredential[]) {
  return credentials.flatMap(({ config: { output, scope }, source }) =>
    output?.endpoint === true ? [{ source, scope }] : [],
  );
}
