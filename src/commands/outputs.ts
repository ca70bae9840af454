/** Tokens for what cannot be proxied, as files and on a listener of their own. Loaded only where a credential asks for either. */

import type { Clock } from '../clock.ts';
import type { Config, ListenAddress } from '../config/config.ts';
import { formatAddress } from '../config/values.ts';
import type { Logger } from '../log/logger.ts';
import { startLocalEndpoint } from '../token/output/local-endpoint.ts';
import { openTokenFile } from '../token/output/token-file.ts';
import type { TokenSource } from '../token/token-source.ts';

export interface Outputs {
  /** Of the token endpoint; undefined where there is none. */
  readonly address: ListenAddress | undefined;
  /** Takes them back. Never rejects. */
  close(): Promise<void>;
}

/**
 * @param tokens in the order of `config.credentials`.
 * @throws {SidecarError} `configuration` when a file cannot be written, or the listener not be opened.
 */
export async function openOutputs(
  config: Config,
  tokens: readonly TokenSource[],
  clock: Clock,
  log: Logger,
): Promise<Outputs> {
  const opened: { close(): Promise<void> }[] = [];
  const close = async () => {
    await Promise.all(opened.map((output) => output.close()));
  };
  const asked = config.credentials.flatMap(({ output, scope }, index) => {
    const source = tokens[index];
    return output === undefined || source === undefined ? [] : [{ output, scope, source }];
  });
  try {
    for (const { output, source } of asked) {
      if (output.file !== undefined)
        opened.push(await openTokenFile({ config: output.file, source, clock, log }));
    }
    const { tokenEndpoint } = config;
    if (tokenEndpoint === undefined) return { address: undefined, close };
    const given = asked.filter(({ output }) => output.endpoint);
    const endpoint = await startLocalEndpoint({ listen: tokenEndpoint.listen, tokens: given, clock, log });
    opened.push(endpoint);
    log.info({ tokenEndpoint: formatAddress(endpoint.address) }, 'tokens are given to callers on loopback');
    return { address: endpoint.address, close };
  } catch (error) {
    await close();
    throw error;
  }
}
