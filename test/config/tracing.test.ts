import { describe, expect, it } from 'vitest';
import type { Problem } from '../../src/config/problems.ts';
import { resolveTracing } from '../../src/config/resolve-tracing.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

function resolve(env: Readonly<Record<string, string>>) {
  const problems: Problem[] = [];
  return { tracing: resolveTracing(env, problems), problems };
}

describe('spans are exported where', () => {
  it.each([
    ['an endpoint is named', ENDPOINT],
    ['one for traces is named', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://collector/v1/traces' }],
    ['the exporter is named', { OTEL_TRACES_EXPORTER: 'otlp' }],
  ])('%s', (_, env) => {
    expect(resolve(env)).toEqual({
      tracing: {
        protocol: 'http/protobuf',
        sampler: 'parentbased_always_on',
        ratio: 1,
        delayMs: 5000,
        timeoutMs: 30_000,
        mostWaiting: 2048,
        mostAtOnce: 512,
      },
      problems: [],
    });
  });

  it.each([
    ['nothing is said', {}],
    ['the endpoint is empty', { OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
    ['there is to be no exporter', { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }],
    ['the SDK is off', { ...ENDPOINT, OTEL_SDK_DISABLED: 'true' }],
    ['other signals are meant', { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://collector:4318' }],
  ])('and are not where %s', (_, env) => {
    expect(resolve(env)).toEqual({ tracing: undefined, problems: [] });
  });
});

it('the standard variables decide how', () => {
  const { tracing, problems } = resolve({
    ...ENDPOINT,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
    OTEL_BSP_SCHEDULE_DELAY: '100',
    OTEL_BSP_EXPORT_TIMEOUT: '200',
    OTEL_BSP_MAX_QUEUE_SIZE: '64',
  });
  expect(problems).toEqual([]);
  expect(tracing).toEqual({
    protocol: 'http/json',
    sampler: 'traceidratio',
    ratio: 0.25,
    delayMs: 100,
    timeoutMs: 200,
    mostWaiting: 64,
    mostAtOnce: 64,
  });
});

describe('what is wrong is named', () => {
  it.each([
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', 'one of http/protobuf, http/json'],
    ['OTEL_TRACES_EXPORTER', 'zipkin', 'one of otlp, none'],
    [
      'OTEL_TRACES_SAMPLER',
      'jaeger_remote',
      'one of always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off, parentbased_traceidratio',
    ],
    ['OTEL_TRACES_SAMPLER_ARG', '2', 'a number from 0 to 1'],
    ['OTEL_BSP_MAX_QUEUE_SIZE', '1000000', 'a whole number from 1 to 65536'],
    ['OTEL_BSP_SCHEDULE_DELAY', '5s', 'a whole number from 1 to 300000'],
  ])('%s=%s', (key, value, expected) => {
    expect(resolve({ ...ENDPOINT, [key]: value }).problems).toEqual([{ key, value, expected }]);
  });

  it('an endpoint that is none, without its value: there may be a password in it', () => {
    const { problems } = resolve({ OTEL_EXPORTER_OTLP_ENDPOINT: 'user:password@collector' });
    expect(problems).toMatchObject([
      { key: 'OTEL_EXPORTER_OTLP_ENDPOINT', expected: 'an http:// or https:// URL' },
    ]);
    expect(JSON.stringify(problems)).not.toContain('password');
  });
});
