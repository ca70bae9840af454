/** Reads OpenTelemetry's standard environment variables. */

import { X509Certificate } from 'node:crypto';
import type { Logger } from '../platform/log/logger.ts';
import { quoted } from '../platform/log/redacted-text.ts';
import type { Problem } from '../platform/problems.ts';
import { checkPem } from './load.ts';

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

/** The exporter reads the other variables. */
export interface TracingConfig {
  readonly protocol: (typeof PROTOCOLS)[number];
  readonly files: CollectorFiles;
  readonly sampler: (typeof SAMPLERS)[number];
  /** The part of traces that ratio samplers keep, from 0 to 1. */
  readonly ratio: number;
  /** Between two exports. */
  readonly delayMs: number;
  /** Bounds one export, to the answer's end. */
  readonly timeoutMs: number;
  /** Others are dropped. */
  readonly mostWaiting: number;
  /** Spans in one export. */
  readonly mostAtOnce: number;
}

/** PEM files, by options of `tls.connect`. */
export interface CollectorFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** Such a value counts as unset (OpenTelemetry specification, *Type-specific guidance*). */
export interface IgnoredVariable {
  readonly key: string;
  readonly value: string;
  /** A noun phrase. */
  readonly expected: string;
}

/** Node's timers take no more. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;

/** By the end of the variable's name. */
const FILES = { ca: 'CERTIFICATE', cert: 'CLIENT_CERTIFICATE', key: 'CLIENT_KEY' } as const;

/**
 * Undefined if nobody asks for traces.
 * @param problems of where spans go and who is trusted with them.
 * @param ignored all other mistakes.
 */
export function resolveTracing(
  env: Environment,
  problems: Problem[],
  ignored: IgnoredVariable[],
): TracingConfig | undefined {
  if (word(env, 'OTEL_SDK_DISABLED', ['true', 'false'], ignored) === 'true') return undefined;
  const exporter = word(env, 'OTEL_TRACES_EXPORTER', ['otlp', 'none'], ignored);
  const endpoints = ENDPOINTS.filter((name) => given(env, name) !== undefined);
  if (exporter === 'none' || (exporter === undefined && endpoints.length === 0)) return undefined;
  for (const name of endpoints) {
    // A URL may have a password.
    if (!isHttpUrl(env[name] as string)) {
      problems.push({ key: name, expected: 'an http:// or https:// URL', code: 'invalid_value' });
    }
  }
  const files = checkFiles(env, problems);
  const protocol =
    word(env, 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', PROTOCOLS, ignored) ??
    word(env, 'OTEL_EXPORTER_OTLP_PROTOCOL', PROTOCOLS, ignored) ??
    'http/protobuf';
  const sampler = word(env, 'OTEL_TRACES_SAMPLER', SAMPLERS, ignored) ?? 'parentbased_always_on';
  const mostWaiting = count(env, 'OTEL_BSP_MAX_QUEUE_SIZE', 2048, 65_536, ignored);
  return {
    protocol,
    files,
    sampler,
    // Other samplers need none, or another kind.
    ratio: sampler.endsWith('traceidratio') ? ratio(env, 'OTEL_TRACES_SAMPLER_ARG', ignored) : 1,
    delayMs: count(env, 'OTEL_BSP_SCHEDULE_DELAY', 5000, 300_000, ignored),
    timeoutMs: Math.min(
      count(env, 'OTEL_BSP_EXPORT_TIMEOUT', 30_000, 300_000, ignored),
      wholeNumber(env, 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', MAX_TIMER_MS, ignored) ??
        count(env, 'OTEL_EXPORTER_OTLP_TIMEOUT', 10_000, MAX_TIMER_MS, ignored),
    ),
    mostWaiting,
    mostAtOnce: count(env, 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512, mostWaiting, ignored),
  };
}

/** Empty is unset. */
function given(env: Environment, key: string): string | undefined {
  const value = env[key]?.trim();
  return value === '' ? undefined : value;
}

/** Variables for traces win. Without an unreadable file, others would be trusted. */
function checkFiles(env: Environment, problems: Problem[]): CollectorFiles {
  const check = (name: keyof typeof FILES): CollectorFiles => {
    const key = [`OTEL_EXPORTER_OTLP_TRACES_${FILES[name]}`, `OTEL_EXPORTER_OTLP_${FILES[name]}`].find(
      (one) => given(env, one) !== undefined,
    );
    if (key === undefined) return {};
    const path = env[key] as string;
    checkPem(key, path, problems, (text) => {
      if (name !== 'key') new X509Certificate(text);
    });
    return { [name]: path };
  };
  return { ...check('ca'), ...check('cert'), ...check('key') };
}

/** Case does not matter. */
function word<Word extends string>(
  env: Environment,
  key: string,
  words: readonly Word[],
  ignored: IgnoredVariable[],
): Word | undefined {
  const value = given(env, key);
  const found = words.find((one) => one === value?.toLowerCase());
  if (value !== undefined && found === undefined) {
    ignored.push({ key, value, expected: `one of ${words.join(', ')}` });
  }
  return found;
}

/** @param standard if unset, at most `most`. */
function count(
  env: Environment,
  key: string,
  standard: number,
  most: number,
  ignored: IgnoredVariable[],
): number {
  return wholeNumber(env, key, most, ignored) ?? Math.min(standard, most);
}

/** Up to `most`; undefined if unset. */
function wholeNumber(
  env: Environment,
  key: string,
  most: number,
  ignored: IgnoredVariable[],
): number | undefined {
  const value = given(env, key);
  if (value === undefined) return undefined;
  const number = Number(value);
  if (Number.isInteger(number) && number >= 1 && number <= most) return number;
  ignored.push({ key, value, expected: `a whole number from 1 to ${most}` });
  return undefined;
}

function ratio(env: Environment, key: string, ignored: IgnoredVariable[]): number {
  const value = given(env, key);
  const number = Number(value);
  if (value !== undefined && number >= 0 && number <= 1) return number;
  if (value !== undefined) ignored.push({ key, value, expected: 'a number from 0 to 1' });
  return 1;
}

function isHttpUrl(text: string): boolean {
  const protocol = URL.parse(text)?.protocol;
  return protocol === 'http:' || protocol === 'https:';
}

export function tellIgnored(ignored: readonly IgnoredVariable[], log: Logger): void {
  for (const { key, value, expected } of ignored) {
    log.warn({ variable: key, value: quoted(value), expected }, 'a variable of OpenTelemetry is ignored');
  }
}
