/** Flags, environment and configuration file, in this order of precedence, to one frozen Config. */

import { nextTurn } from '../next-turn.ts';
import type { Config } from './config.ts';
import { type FileReading, readConfigFile } from './file.ts';
import type { FileConfig } from './file-schema.ts';
import { withoutFollowUps } from './follow-ups.ts';
import { ConfigurationError, type Problem } from './problems.ts';
import type { ProxyValues } from './proxy-settings.ts';
import { resolveConfig } from './resolve-config.ts';
import type { SourceText } from './source-text.ts';
import { checkTlsFiles } from './tls-files.ts';

/**
 * Resolves and checks everything, certificate files included.
 * @param found what is wrong already, to be reported with the rest.
 * @param text of the file, where that has been read already.
 * @throws {ConfigurationError} with every problem there is.
 */
export async function loadConfig(
  given: ProxyValues,
  found: readonly Problem[] = [],
  text?: string,
): Promise<Config> {
  const problems: Problem[] = [...found];
  const reading: FileReading =
    given.config === undefined
      ? { config: {} as FileConfig, understood: true }
      : await readConfigFile(given.config.text, given.config.key, problems, text);
  await checkTlsFiles(reading.config, problems);
  await nextTurn();
  const config = resolveConfig(reading, given, problems);
  if (problems.length > 0) {
    throw new ConfigurationError(withoutFollowUps(problems).map(placed(reading.source)));
  }
  await nextTurn();
  return deepFreeze(config);
}

/** With its place in the file, where it is in the file. */
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
