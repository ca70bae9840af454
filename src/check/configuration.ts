/** What the configuration alone shows, once it is valid. */

import type { Config } from '../config/config.ts';
import { policiesOf } from '../config/entries.ts';
import type { IgnoredVariable, TracingConfig } from '../config/resolve-tracing.ts';
import { quoted } from '../platform/log/shown-text.ts';
import { codeOf, type Problem, remedyOf } from '../platform/problems.ts';
import { about, type Finding } from './examination.ts';

/** A valid configuration, with the credentials that nothing uses. */
export function examineConfiguration(config: Config): Finding[] {
  const { credentials, routes } = config;
  const used = new Set(policiesOf(config).map(({ credential }) => credential));
  const unused = credentials.filter(({ name, output }) => !used.has(name) && output === undefined);
  const counted = `${credentials.length} credential(s), ${routes.length} route(s)`;
  return [
    about(undefined).ok('configuration', counted),
    ...unused.map(({ name }) =>
      about(`credential ${name}`).warning(
        'credential_use',
        'no route, destination, captured host or output uses it, and the pod waits for its token all the same',
        'remove it, or name it where its token is wanted',
      ),
    ),
  ];
}

/** Tracing, if anybody asks for it. */
export function examineTracing(
  tracing: TracingConfig | undefined,
  ignored: readonly IgnoredVariable[],
): Finding[] {
  const of = about(undefined);
  return [
    ...(tracing === undefined
      ? []
      : [of.ok('tracing', `spans are exported by ${tracing.protocol}, sampled by ${tracing.sampler}`)]),
    ...ignored.map(({ key, value, expected }) =>
      of.warning('tracing', `${key}: ${quoted(value, key)} is ignored`, `write ${expected}, or take it away`),
    ),
  ];
}

/** What is wrong with an unusable configuration; values are left out. */
export function invalidConfiguration(problems: readonly Problem[]): Finding[] {
  return problems.map((problem) => {
    const { key, expected, place } = problem;
    const where =
      place === undefined || key.startsWith(place.file)
        ? ''
        : ` (${place.file}:${place.line}:${place.column})`;
    const detail = `${codeOf(problem)}: ${key}${where}: expected ${expected}`;
    return about(undefined).failure('configuration', 'configuration', detail, remedyOf(problem));
  });
}
