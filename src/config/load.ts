/** Flags, environment and configuration file, in this order of precedence, to one frozen Config. */

import type { Config } from './config.ts';
import { readConfigFile } from './file.ts';
import type { FileConfig } from './file-schema.ts';
import { ConfigurationError, type Problem } from './problems.ts';
import type { ProxyValues } from './proxy-settings.ts';
import { resolveConfig } from './resolve-config.ts';
import { checkTlsFiles } from './tls-files.ts';

/**
 * Resolves and checks everything, certificate files included.
 * @throws {ConfigurationError} with every problem there is.
 */
export async function loadConfig(given: ProxyValues): Promise<Config> {
  const problems: Problem[] = [];
  const reading =
    given.config === undefined
      ? { config: {} as FileConfig, understood: true }
      : await readConfigFile(given.config.text, given.config.key, problems);
  checkTlsFiles(reading.config, problems);
  const config = resolveConfig(reading, given, problems);
  if (problems.length > 0) throw new ConfigurationError(firstOfEachKey(problems));
  return deepFreeze(config);
}

/** A setting that was not understood would be reported a second time as missing. */
function firstOfEachKey(problems: readonly Problem[]): Problem[] {
  return problems.filter(({ key }, index) => problems.findIndex((other) => other.key === key) === index);
}

function deepFreeze<T extends object>(value: T): T {
  for (const inner of Object.values(value))
    if (typeof inner === 'object' && inner !== null) deepFreeze(inner);
  return Object.freeze(value);
}
