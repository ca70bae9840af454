import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type IgnoredVariable, resolveTracing } from '../../src/config/resolve-tracing.ts';
import type { Problem } from '../../src/platform/problems.ts';
import { selfSigned } from '../wire/certificate.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

function resolve(env: Readonly<Record<string, string>>) {
  const problems: Problem[] = [];
  const ignored: IgnoredVariable[] = [];
  return { tracing: resolveTracing(env, problems, ignored), problems, ignored };
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
        files: {},
        sampler: 'parentbased_always_on',
        ratio: 1,
        delayMs: 5000,
        timeoutMs: 10_000,
        mostWaiting: 2048,
        mostAtOnce: 512,
      },
      problems: [],
      ignored: [],
    });
  });

  it.each([
    ['nothing is said', {}],
    ['the endpoint is empty', { OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
    ['there is to be no exporter', { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }],
    ['the SDK is off', { ...ENDPOINT, OTEL_SDK_DISABLED: 'True' }],
    ['files are named that nobody reads', { OTEL_EXPORTER_OTLP_CERTIFICATE: '/nonexistent' }],
    ['other signals are meant', { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://collector:4318' }],
  ])('and are not where %s', (_, env) => {
    expect(resolve(env)).toEqual({ tracing: undefined, problems: [], ignored: [] });
  });
});

it('the standard variables decide how', () => {
  const { tracing, problems } = resolve({
    ...ENDPOINT,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'HTTP/JSON',
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
    OTEL_BSP_SCHEDULE_DELAY: '100',
    OTEL_BSP_EXPORT_TIMEOUT: '200',
    OTEL_BSP_MAX_QUEUE_SIZE: '64',
  });
  expect(problems).toEqual([]);
  expect(tracing).toEqual({
    protocol: 'http/json',
    files: {},
    sampler: 'traceidratio',
    ratio: 0.25,
    delayMs: 100,
    timeoutMs: 200,
    mostWaiting: 64,
    mostAtOnce: 64,
  });
});

it('an export has the time of the shorter of two bounds, that for traces before that for all', () => {
  const timeoutMs = (env: Readonly<Record<string, string>>) =>
    resolve({ ...ENDPOINT, ...env }).tracing?.timeoutMs;
  expect(timeoutMs({ OTEL_EXPORTER_OTLP_TIMEOUT: '60000' })).toBe(30_000);
  expect(timeoutMs({ OTEL_EXPORTER_OTLP_TIMEOUT: '300' })).toBe(300);
  expect(timeoutMs({ OTEL_EXPORTER_OTLP_TIMEOUT: '300', OTEL_BSP_EXPORT_TIMEOUT: '200' })).toBe(200);
  expect(timeoutMs({ OTEL_EXPORTER_OTLP_TIMEOUT: '300', OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '400' })).toBe(
    400,
  );
});

describe('a value that nobody knows is named and counts as unset', () => {
  const { tracing: standard } = resolve(ENDPOINT);

  it.each([
    ['OTEL_SDK_DISABLED', 'yes', 'one of true, false'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', 'one of http/protobuf, http/json'],
    ['OTEL_TRACES_EXPORTER', 'zipkin', 'one of otlp, none'],
    [
      'OTEL_TRACES_SAMPLER',
      'jaeger_remote',
      'one of always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off, parentbased_traceidratio',
    ],
    ['OTEL_BSP_MAX_QUEUE_SIZE', '1000000', 'a whole number from 1 to 65536'],
    ['OTEL_BSP_MAX_EXPORT_BATCH_SIZE', '4096', 'a whole number from 1 to 2048'],
    ['OTEL_BSP_SCHEDULE_DELAY', '5s', 'a whole number from 1 to 300000'],
    ['OTEL_EXPORTER_OTLP_TIMEOUT', '10s', 'a whole number from 1 to 2147483647'],
  ])('%s=%s', (key, value, expected) => {
    expect(resolve({ ...ENDPOINT, [key]: value })).toEqual({
      tracing: standard,
      problems: [],
      ignored: [{ key, value, expected }],
    });
  });

  it('the argument of a sampler that has one', () => {
    const env = { ...ENDPOINT, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' };
    const { tracing, ignored } = resolve(env);
    expect(tracing?.ratio).toBe(1);
    expect(ignored).toEqual([
      { key: 'OTEL_TRACES_SAMPLER_ARG', value: '2', expected: 'a number from 0 to 1' },
    ]);
    expect(resolve({ ...env, OTEL_TRACES_SAMPLER: 'always_on' }).ignored).toEqual([]);
  });

  it('an exporter alone asks for nothing', () => {
    const { tracing, ignored } = resolve({ OTEL_TRACES_EXPORTER: 'console' });
    expect(tracing).toBeUndefined();
    expect(ignored).toHaveLength(1);
  });
});

describe('what decides where spans go and who is trusted is a problem', () => {
  it.each(['CERTIFICATE', 'CLIENT_CERTIFICATE', 'CLIENT_KEY'])('a file that cannot be read: %s', (kind) => {
    for (const key of [`OTEL_EXPORTER_OTLP_${kind}`, `OTEL_EXPORTER_OTLP_TRACES_${kind}`]) {
      expect(resolve({ ...ENDPOINT, [key]: '/nonexistent/ca.crt' }).problems).toEqual([
        {
          key,
          value: '/nonexistent/ca.crt',
          expected: 'a readable file (ENOENT)',
          code: 'file_unreadable',
        },
      ]);
    }
  });

  it('a certificate that is none, by the variable that is read', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'tracing-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    const path = join(directory, 'ca.crt');
    await writeFile(path, 'nothing of the kind');
    const env = {
      ...ENDPOINT,
      OTEL_EXPORTER_OTLP_CERTIFICATE: '/nonexistent',
      OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: path,
    };
    expect(resolve(env).problems).toMatchObject([
      { key: 'OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE', value: path, code: 'invalid_pem' },
    ]);
    await writeFile(path, selfSigned('127.0.0.1').cert);
    expect(resolve(env).problems).toEqual([]);
  });

  it('an endpoint that is none, without its value: there may be a password in it', () => {
    const { problems } = resolve({ OTEL_EXPORTER_OTLP_ENDPOINT: 'user:password@collector' });
    expect(problems).toMatchObject([
      { key: 'OTEL_EXPORTER_OTLP_ENDPOINT', expected: 'an http:// or https:// URL' },
    ]);
    expect(JSON.stringify(problems)).not.toContain('password');
  });
});
