import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { InMemorySpanExporter, type ReadableSpan } from '@opentelemetry/sdk-trace';
import { describe, expect, it, onTestFinished } from 'vitest';
import { resolveTracing, type TracingConfig } from '../../src/config/resolve-tracing.ts';
import { createLogger } from '../../src/platform/log/logger.ts';
import { openTracing, type Tracing } from '../../src/sidecar/tracing/tracing.ts';
import { FakeBearer, FIRST, renewable, SECOND, withoutToken } from './fake-bearer.ts';
import { connectHttp2 } from './http2/raw-http2-client.ts';
import { HTTP2, startHttp2 } from './http2-upstream/node-upstream.ts';
import { answer, get, ok, post } from './messages.ts';
import { answering, inTurn, startUpstream } from './raw-upstream.ts';
import { type Sidecar, type SidecarSettings, startSidecar } from './sidecar.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';

interface Traced {
  readonly sidecar: Sidecar;
  /** Those that have ended, in the order of their ends. */
  spans(): Promise<readonly ReadableSpan[]>;
}

/** Spans come as the SDK makes them; only their way out is short. */
async function startTraced(
  settings: SidecarSettings,
  env: Readonly<Record<string, string>> = {},
): Promise<Traced> {
  const config = resolveTracing({ OTEL_TRACES_EXPORTER: 'otlp', ...env }, [], []) as TracingConfig;
  const kept: ReadableSpan[] = [];
  const exporter = new InMemorySpanExporter();
  const keep = exporter.export.bind(exporter);
  exporter.export = (spans, done) => {
    kept.push(...spans);
    keep(spans, done);
  };
  const tracing: Tracing = openTracing(config, createLogger('silent'), { exporter });
  onTestFinished(() => tracing.close(1000));
  const sidecar = await startSidecar({ ...settings, tracer: tracing.tracer });
  return {
    sidecar,
    async spans() {
      await sidecar.idle();
      await tracing.close(1000);
      return kept;
    },
  };
}

const described = ({ name, kind, attributes, status }: ReadableSpan) => ({
  name,
  kind,
  attributes,
  status: status.code,
});

describe('a traced request', () => {
  it('has a server span and a client span with the attributes of the conventions', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const traced = await startTraced({ upstream });

    await traced.sidecar.exchange(get('/orders/7?key=secret-query', 'Cookie: secret-cookie'));

    const [client, server] = await traced.spans();
    const { host, port } = upstream.address;
    expect(client && described(client)).toEqual({
      name: 'GET',
      kind: SpanKind.CLIENT,
      attributes: {
        'http.request.method': 'GET',
        'http.response.status_code': 200,
        'server.address': host,
        'server.port': port,
        'url.full': `${upstream.protocol}://${upstream.authority}/orders/7`,
        'url.scheme': upstream.protocol,
      },
      status: SpanStatusCode.UNSET,
    });
    expect(server && described(server)).toEqual({
      name: 'GET /',
      kind: SpanKind.SERVER,
      attributes: {
        'http.request.method': 'GET',
        'http.response.status_code': 200,
        'http.route': '/',
        'network.protocol.name': 'http',
        'network.protocol.version': '1.1',
        'server.address': 'app.test',
        'server.port': 80,
        'token_sidecar.route': 'api',
        'url.path': '/orders/7',
        'url.scheme': 'http',
      },
      status: SpanStatusCode.UNSET,
    });
    expect(client?.parentSpanContext?.spanId).toBe(server?.spanContext().spanId);
    expect(server?.parentSpanContext).toBeUndefined();
    const text = JSON.stringify([client?.attributes, server?.attributes, client?.name, server?.name]);
    expect(text).not.toContain('secret');
    expect(text).not.toContain(FIRST);
  });

  it('continues the trace of the app, and the upstream gets the id of the client span', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const traced = await startTraced({ upstream });

    await traced.sidecar.exchange(get('/', `Traceparent: 00-${TRACE}-${PARENT}-01`, 'Tracestate: vendor=1'));

    const [client, server] = await traced.spans();
    expect(server?.spanContext().traceId).toBe(TRACE);
    expect(server?.parentSpanContext?.spanId).toBe(PARENT);
    const { head } = await upstream.request();
    expect(head.values('traceparent')).toEqual([`00-${TRACE}-${client?.spanContext().spanId}-01`]);
    expect(head.values('tracestate')).toEqual(['vendor=1']);
  });

  it.each([
    ['obtained', { held: undefined, obtain: async () => FIRST }, answering(ok('x'))],
    ['replaced', { replace: async () => SECOND }, inTurn(answering(answer(401)), answering(ok('x')))],
  ])('has a span linked to the token request that it waited for: a token is %s', async (_, script, serve) => {
    const grant = { traceId: TRACE, spanId: PARENT, sampled: true };
    const upstream = await startUpstream(serve);
    const traced = await startTraced({ upstream, bearer: new FakeBearer({ ...script, grant }) });

    await traced.sidecar.exchange(get('/'));

    const spans = await traced.spans();
    const server = spans.find(({ kind }) => kind === SpanKind.SERVER);
    expect(server?.links).toMatchObject([{ context: { traceId: TRACE, spanId: PARENT } }]);
    expect(server?.spanContext().traceId).not.toBe(TRACE);
  });

  it('has a span without a link if a token was held', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const grant = { traceId: TRACE, spanId: PARENT, sampled: true };
    const traced = await startTraced({ upstream, bearer: new FakeBearer({ grant }) });

    await traced.sidecar.exchange(get('/'));

    for (const { links } of await traced.spans()) expect(links).toEqual([]);
  });

  it('begins a new trace without tracestate if the app’s traceparent is invalid', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const traced = await startTraced({ upstream });

    await traced.sidecar.exchange(get('/', 'traceparent: 00-nonsense', 'tracestate: vendor=1'));

    const [client] = await traced.spans();
    const { traceId, spanId } = client?.spanContext() ?? {};
    const { head } = await upstream.request();
    expect(head.values('traceparent')).toEqual([`00-${traceId}-${spanId}-01`]);
    expect(head.value('tracestate')).toBeUndefined();
  });

  it('has no span if the app’s trace is not sampled, and the trace is passed on', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const traced = await startTraced({ upstream });

    await traced.sidecar.exchange(get('/', `traceparent: 00-${TRACE}-${PARENT}-00`));

    expect(await traced.spans()).toEqual([]);
    const { head } = await upstream.request();
    expect(head.value('traceparent')).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`));
  });

  it('has a numbered client span for each attempt', async () => {
    const upstream = await startUpstream(inTurn(answering(answer(401)), answering(ok('x'))));
    const traced = await startTraced({ upstream, bearer: renewable() });

    expect((await traced.sidecar.exchange(post('/', 'body'))).status).toBe(200);

    const clients = (await traced.spans()).filter(({ kind }) => kind === SpanKind.CLIENT);
    expect(clients.map(({ attributes }) => attributes['http.request.resend_count'])).toEqual([undefined, 1]);
    expect(clients.map(({ attributes }) => attributes['http.response.status_code'])).toEqual([401, 200]);
    expect(clients.map(({ status }) => status.code)).toEqual([SpanStatusCode.ERROR, SpanStatusCode.UNSET]);
    expect(upstream.requests.map(({ head }) => head.value('authorization'))).toEqual([FIRST, SECOND]);
    const told = upstream.requests.map(({ head }) => head.value('traceparent')?.split('-')[2]);
    expect(told).toEqual(clients.map((span) => span.spanContext().spanId));
  });

  it('over HTTP/2 has the same spans', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const traced = await startTraced({ upstream });
    const client = await connectHttp2(traced.sidecar);

    await client.answer(client.get('/over-2?a=b'));

    const server = (await traced.spans()).find(({ kind }) => kind === SpanKind.SERVER);
    expect(server?.attributes).toMatchObject({ 'network.protocol.version': '2', 'url.path': '/over-2' });
  });

  it.each([
    ['14', 'UNAVAILABLE', SpanStatusCode.ERROR],
    ['5', undefined, SpanStatusCode.UNSET],
  ])('that ended with the gRPC status %s is marked as %s', async (status, type, code) => {
    const upstream = await startHttp2(({ stream }) => {
      stream.respond({ ':status': 200, 'grpc-status': status }, { endStream: true });
    });
    const traced = await startTraced({ upstream, route: { protocol: HTTP2 } });
    const client = await connectHttp2(traced.sidecar);
    const call = client.post('/pkg.Service/Method', 'content-type', 'application/grpc', 'te', 'trailers');
    client.data(call, '\0\0\0\0\0', true);

    await client.answer(call);

    const server = (await traced.spans()).find(({ kind }) => kind === SpanKind.SERVER);
    expect(server?.attributes).toMatchObject({
      'http.response.status_code': 200,
      'rpc.grpc.status_code': status,
    });
    expect(server?.attributes['error.type']).toBe(type);
    expect(server?.status.code).toBe(code);
  });

  it('that the upstream itself answered with 499 is an ordinary answer', async () => {
    const upstream = await startUpstream(answering(answer(499)));
    const traced = await startTraced({ upstream });

    expect((await traced.sidecar.exchange(get('/'))).status).toBe(499);

    const server = (await traced.spans()).find(({ kind }) => kind === SpanKind.SERVER);
    expect(server?.attributes['http.response.status_code']).toBe(499);
    expect(server?.attributes['error.type']).toBeUndefined();
    expect(server?.status.code).toBe(SpanStatusCode.UNSET);
  });

  it('that the app abandoned before the answer says so', async () => {
    const upstream = await startUpstream();
    const traced = await startTraced({ upstream });
    const client = await traced.sidecar.connect();
    client.send(get('/'));
    await upstream.request();

    client.destroy();

    const server = (await traced.spans()).find(({ kind }) => kind === SpanKind.SERVER);
    expect(server?.attributes['http.response.status_code']).toBeUndefined();
    expect(server?.attributes['error.type']).toBe('client_closed_request');
  });

  it('that the sidecar refused has the error code', async () => {
    const upstream = await startUpstream();
    const traced = await startTraced({ upstream, bearer: withoutToken() });

    const refused = await traced.sidecar.exchange(get('/'));

    const [server, ...others] = await traced.spans();
    expect(others).toEqual([]);
    expect(server?.attributes).toMatchObject({
      'http.response.status_code': 503,
      'error.type': 'token_unavailable',
    });
    expect(server?.status.code).toBe(SpanStatusCode.ERROR);
    expect(refused.head.value('x-request-id')).toBeDefined();
  });

  it('says how the upstream failed', async () => {
    const upstream = await startUpstream((arrived) => arrived.connection.destroy());
    const traced = await startTraced({ upstream });

    await traced.sidecar.exchange(post('/', 'body'));

    const [client, server] = await traced.spans();
    for (const span of [client, server]) {
      expect(span?.attributes['error.type']).toBe('upstream_protocol_error');
      expect(span?.status.code).toBe(SpanStatusCode.ERROR);
    }
  });
});

it('traces are sampled as the standard environment variables say', async () => {
  const upstream = await startUpstream(answering(ok('x')));
  const traced = await startTraced({ upstream }, { OTEL_TRACES_SAMPLER: 'always_off' });

  await traced.sidecar.exchange(get('/', `traceparent: 00-${TRACE}-${PARENT}-01`));

  expect(await traced.spans()).toEqual([]);
});

it('duration histograms have exemplars with a trace id', async () => {
  const upstream = await startUpstream(answering(ok('x')));
  const traced = await startTraced({ upstream });

  await traced.sidecar.exchange(get('/', `traceparent: 00-${TRACE}-${PARENT}-01`));

  await traced.sidecar.idle();
  const [[sample, exemplar] = ['', '']] = [...traced.sidecar.exemplars()];
  expect(sample).toMatch(
    /^token_sidecar_proxy_request_duration_seconds_bucket\{le="[\d.]+",route="api",code="2xx"\}$/,
  );
  expect(exemplar).toMatch(new RegExp(`^ # \\{trace_id="${TRACE}"\\} [\\d.e-]+$`));
  expect(await traced.sidecar.metrics()).toContain(`${sample} 1`);
});
