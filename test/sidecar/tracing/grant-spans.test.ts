import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { InMemorySpanExporter, type ReadableSpan } from '@opentelemetry/sdk-trace';
import { expect, it, onTestFinished } from 'vitest';
import { resolveTracing, type TracingConfig } from '../../../src/config/resolve-tracing.ts';
import { createLogger } from '../../../src/platform/log/logger.ts';
import { openTracing } from '../../../src/sidecar/tracing/tracing.ts';
import type { GrantTrace } from '../../../src/token/bearer-source.ts';
import { settle } from '../../support/manual-clock.ts';
import { failure, loaded, openSource, rejection, token } from '../../token/opened-source.ts';

/** A source whose grants leave spans. */
async function openTraced() {
  const config = resolveTracing({ OTEL_TRACES_EXPORTER: 'otlp' }, [], []) as TracingConfig;
  const kept: ReadableSpan[] = [];
  const exporter = new InMemorySpanExporter();
  const keep = exporter.export.bind(exporter);
  exporter.export = (spans, done) => {
    kept.push(...spans);
    keep(spans, done);
  };
  const tracing = openTracing(config, createLogger('silent'), { exporter });
  onTestFinished(() => tracing.close(1000));
  const opened = await openSource(loaded('the-secret'), { by: 'notification' }, undefined, tracing.grants);
  return {
    ...opened,
    /** Those that have ended, in the order of their ends. */
    async spans(): Promise<readonly ReadableSpan[]> {
      await tracing.close(1000);
      return kept;
    },
  };
}

/** Which grants a request was told to wait for. */
function linked() {
  const grants: GrantTrace[] = [];
  return { grants, awaits: (grant: GrantTrace) => void grants.push(grant) };
}

const resultOf = ({ attributes }: ReadableSpan) => attributes['token_sidecar.grant.result'];

it('a grant leaves a span of a client, with where it was asked for and what came of it, and nothing secret', async () => {
  const { last, spans } = await openTraced();
  await last().answer(token('the-token'));

  const [span] = await spans();
  expect(span).toMatchObject({
    name: 'grant',
    kind: SpanKind.CLIENT,
    links: [],
    status: { code: SpanStatusCode.UNSET },
    attributes: {
      'http.request.method': 'POST',
      'http.response.status_code': 200,
      'server.address': '127.0.0.1',
      'server.port': 80,
      'url.full': 'http://127.0.0.1/token?…',
      'url.scheme': 'http',
      'token_sidecar.credential': 'default',
      'token_sidecar.grant.reason': 'startup',
      'token_sidecar.grant.result': 'success',
    },
  });
  expect(span?.parentSpanContext).toBeUndefined();
  expect(JSON.stringify([span?.attributes, span?.events])).not.toMatch(/the-secret|the-token|shop/);
});

it('the span of one that was refused, or got no answer, says which', async () => {
  const { last, clock, spans } = await openTraced();
  await last().answer(failure);
  await clock.advance(500);
  await last().answer(rejection);

  const [unanswered, refused] = await spans();
  expect(unanswered).toMatchObject({
    status: { code: SpanStatusCode.ERROR },
    attributes: { 'error.type': 'unavailable', 'token_sidecar.grant.reason': 'startup' },
  });
  expect(unanswered?.attributes).not.toHaveProperty('http.response.status_code');
  expect(refused).toMatchObject({
    attributes: {
      'error.type': 'rejected',
      'http.response.status_code': 401,
      'token_sidecar.grant.reason': 'retry',
    },
  });
});

it('one that a changed Secret overtakes leaves a span, and is no error', async () => {
  const { change, last, grants, spans } = await openTraced();
  change(loaded('two'));
  await settle();
  expect(grants).toHaveLength(2);
  await last().answer(token('a'));

  const ended = await spans();
  expect(ended.map(resultOf)).toEqual(['given_up', 'success']);
  expect(ended[0]?.status.code).toBe(SpanStatusCode.UNSET);
});

it('the end of the program ends the span of a grant in flight, once', async () => {
  const { source, spans } = await openTraced();
  await source.close();

  expect((await spans()).map(resultOf)).toEqual(['given_up']);
});

it('every request that waits is told of the grant in flight, and of the one after it', async () => {
  const { source, clock, last, spans } = await openTraced();
  const [one, other] = [linked(), linked()];
  const callers = [source.obtain(one), source.obtain(other)];
  await last().answer(failure);
  await clock.advance(500);
  await last().answer(token('a'));
  await Promise.all(callers);
  const none = linked();
  await source.obtain(none);

  const ids = (await spans()).map((span) => span.spanContext().spanId);
  expect(ids).toHaveLength(2);
  expect(one.grants.map(({ spanId }) => spanId)).toEqual(ids);
  expect(other.grants).toEqual(one.grants);
  expect(one.grants[0]?.sampled).toBe(true);
  expect(none.grants).toEqual([]);
});

it('a request whose token was refused is told of the grant of the other', async () => {
  const { api, clock, last, spans } = await openTraced();
  await last().answer(token('a'));
  await clock.advance(5000);
  const { grants, awaits } = linked();
  const replaced = api.replace('Bearer a', { awaits });
  await settle();
  await last().answer(token('b'));
  expect(await replaced).toBe('Bearer b');

  const [, renewal] = await spans();
  expect(renewal?.attributes).toMatchObject({ 'token_sidecar.grant.reason': 'upstream_401' });
  expect(grants.map(({ spanId }) => spanId)).toEqual([renewal?.spanContext().spanId]);
});
