/** Flags, environment and configuration file, in this order of precedence, to one frozen Config. */

import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { nextTurn } from '../platform/time/async.ts';
import type { Config } from './config.ts';
import { withoutFollowUps } from './entries.ts';
import type { FileReading } from './file.ts';
import type { FileConfig } from './file-schema.ts';
import type { ProxyValues } from './proxy-settings.ts';
import { resolveConfig } from './resolve-config.ts';
import type { SourceText } from './source-text.ts';
import { checkTlsFiles, type GatewayFiles } from './tls-files.ts';

/**
 * Resolves and checks everything, certificate files included.
 * @param found problems so far, to be reported with the rest.
 * @param text of the file, if already read.
 * @throws {ConfigurationError} with every problem.
 */
export async function loadConfig(
  given: ProxyValues,
  found: readonly Problem[] = [],
  text?: string,
  gatewayFiles: GatewayFiles = 'judged',
): Promise<Config> {
  const problems: Problem[] = [...found];
  const reading = await readFile(given, problems, text);
  await checkTlsFiles(reading.config, problems, gatewayFiles);
  await nextTurn();
  const config = resolveConfig(reading, given, problems);
  if (problems.length > 0) {
    const source = await reading.source?.();
    throw new ConfigurationError(withoutFollowUps(problems).map(placed(source)));
  }
  await nextTurn();
  return deepFreeze(config);
}

async function readFile(
  { config }: ProxyValues,
  problems: Problem[],
  text: string | undefined,
): Promise<FileReading> {
  if (config === undefined) return { config: {} as FileConfig, understood: true };
  const { readConfigFile } = await import('./file.ts');
  return readConfigFile(config.text, config.key, problems, text);
}

/** Adds to problems that were found later their places in the file; unchanged if the file could not be read. */
export async function placedInFile(
  problems: readonly Problem[],
  { path, text }: { readonly path: string; readonly text: string | undefined },
): Promise<Problem[]> {
  if (text === undefined) return [...problems];
  const { parseConfig } = await import('./file.ts');
  const { source } = await parseConfig(text, path, []);
  return problems.map(placed(await source?.()));
}

/** Adds its place in the file, if it has one. */
function placed(source: SourceText | undefined): (problem: Problem) => Problem {
  return (problem) => {
    const of = problem.value === undefined ? 'key' : 'value';
    const place = problem.place ?? source?.find(problem.key, of);
    return place === undefined ? problem : { ...problem, place };
  };
}

function deepFreeze<T extends object>(value: T): T {
  for (const inner of Object.values(value))
    if (typeof inner === 'object' && inner !== null) deepFreeze(inner);
  return Object.freeze(value);
}
