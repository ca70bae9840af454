/** Whether spans are exported, by the variables that every program with OpenTelemetry has (OpenTelemetry specification, *SDK environment variables*). */

import type { Problem } from './problems.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const PROTOCOLS = ['http/protobuf', 'http/json'] as const;
const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

/** What is decided here; endpoint, headers, certificates, service and resource the exporter reads from the same variables by itself. */
export interface TracingConfig {
  readonly protocol: (typeof PROTOCOLS)[number];
  readonly sampler: (typeof SAMPLERS)[number];
  /** The part of traces that the ratio samplers keep, from 0 to 1. */
  readonly ratio: number;
  /** Between two exports. */
  readonly delayMs: number;
  /** For one export. */
  readonly timeoutMs: number;
  /** Spans that wait at the most; further ones are dropped. */
  readonly mostWaiting: number;
  /** Spans in one export. */
  readonly mostAtOnce: number;
}

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;

/** Undefined where nobody asks for traces; what is wrong joins `problems`. */
export function resolveTracing(env: Environment, problems: Problem[]): TracingConfig | undefined {
  const isSet = (name: string) => (env[name] ?? '') !== '';
  if (env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return undefined;
  const exporter = word(env, 'OTEL_TRACES_EXPORTER', ['otlp', 'none'], problems);
  if (exporter === 'none' || (exporter === undefined && !ENDPOINTS.some(isSet))) return undefined;
  for (const name of ENDPOINTS) {
    // A URL may have a password in it: the value is not shown.
    if (isSet(name) && !isHttpUrl(env[name] as string)) {
      problems.push({ key: name, expected: 'an http:// or https:// URL', code: 'invalid_value' });
    }
  }
  const protocol =
    word(env, 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', PROTOCOLS, problems) ??
    word(env, 'OTEL_EXPORTER_OTLP_PROTOCOL', PROTOCOLS, problems) ??
    'http/protobuf';
  const mostWaiting = count(env, 'OTEL_BSP_MAX_QUEUE_SIZE', 2048, 65_536, problems);
  return {
    protocol,
    sampler: word(env, 'OTEL_TRACES_SAMPLER', SAMPLERS, problems) ?? 'parentbased_always_on',
    ratio: ratio(env, 'OTEL_TRACES_SAMPLER_ARG', problems),
    delayMs: count(env, 'OTEL_BSP_SCHEDULE_DELAY', 5000, 300_000, problems),
    timeoutMs: count(env, 'OTEL_BSP_EXPORT_TIMEOUT', 30_000, 300_000, problems),
    mostWaiting,
    mostAtOnce: Math.min(
      mostWaiting,
      count(env, 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512, mostWaiting, problems),
    ),
  };
}

function word<Word extends string>(
  env: Environment,
  key: string,
  words: readonly Word[],
  problems: Problem[],
): Word | undefined {
  const value = env[key];
  if (value === undefined || value === '') return undefined;
  const found = words.find((one) => one === value.trim());
  if (found === undefined) problems.push({ key, value, expected: `one of ${words.join(', ')}` });
  return found;
}

function count(env: Environment, key: string, standard: number, most: number, problems: Problem[]): number {
  const value = env[key];
  if (value === undefined || value === '') return Math.min(standard, most);
  const number = Number(value);
  if (Number.isInteger(number) && number >= 1 && number <= most) return number;
  problems.push({ key, value, expected: `a whole number from 1 to ${most}` });
  return standard;
}

function ratio(env: Environment, key: string, problems: Problem[]): number {
  const value = env[key];
  if (value === undefined || value === '') return 1;
  const number = Number(value);
  if (number >= 0 && number <= 1) return number;
  problems.push({ key, value, expected: 'a number from 0 to 1' });
  return 1;
}

function isHttpUrl(text: string): boolean {
  const protocol = URL.parse(text)?.protocol;
  return protocol === 'http:' || protocol === 'https:';
}
