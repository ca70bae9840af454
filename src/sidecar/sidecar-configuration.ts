/** What a sidecar is started with: judged in the same way by `proxy`, which runs it, and by `check`, which examines it. */

import type { CommandContext } from '../config/command.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import type { ProxyValues } from '../config/proxy-settings.ts';
import { type IgnoredVariable, resolveTracing, type TracingConfig } from '../config/resolve-tracing.ts';
import type { Problem } from '../platform/problems.ts';

export interface SidecarConfiguration {
  readonly config: Config;
  /** Undefined if nobody asks for traces. */
  readonly tracing: TracingConfig | undefined;
  /** OpenTelemetry variables that are treated as unset. */
  readonly ignored: readonly IgnoredVariable[];
}

/**
 * @param found problems so far, to be reported with the rest.
 * @param text of the configuration file, if already read.
 * @throws {ConfigurationError} with every problem.
 */
export async function loadSidecarConfiguration(
  given: ProxyValues,
  env: CommandContext['env'],
  found: readonly Problem[],
  text?: string,
): Promise<SidecarConfiguration> {
  const problems = [...found];
  const ignored: IgnoredVariable[] = [];
  const tracing = resolveTracing(env, problems, ignored);
  return { config: await loadConfig(given, problems, text), tracing, ignored };
}
