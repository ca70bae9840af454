import { beforeEach, describe, expect, it } from 'vitest';
import { Registry } from '../../src/platform/prometheus.ts';
import type { Protocol } from '../../src/proxy/http/messages.ts';
import type { ProxyMetrics } from '../../src/proxy/metrics.ts';
import { testProxyMetrics } from '../support/proxy-metrics.ts';

const asked = (method: string, protocol: Protocol = 'http1') => ({ method, protocol });

describe('proxy metrics', () => {
  let registry: Registry;
  let metrics: ProxyMetrics;

  beforeEach(() => {
    registry = new Registry();
    metrics = testProxyMetrics(registry);
  });

  async function lines(): Promise<string[]> {
    return (await registry.metrics()).split('\n');
  }

  it('count a request when it ends', async () => {
    const route = metrics.forRoute('api');
    route.started();
    expect(await lines()).toContain('token_sidecar_proxy_requests_in_flight{route="api"} 1');

    route.ended(asked('GET'), 200, 1500, 'http1');

    const after = await lines();
    expect(after).toContain('token_sidecar_proxy_requests_in_flight{route="api"} 0');
    expect(after).toContain('token_sidecar_proxy_requests_total{route="api",method="GET",code="200"} 1');
    expect(after).toContain('token_sidecar_proxy_request_duration_seconds_sum{route="api",code="2xx"} 1.5');
    expect(after).toContain(
      'token_sidecar_proxy_request_duration_seconds_bucket{le="2.5",route="api",code="2xx"} 1',
    );
    expect(after).toContain(
      'token_sidecar_proxy_request_duration_seconds_bucket{le="1",route="api",code="2xx"} 0',
    );
  });

  it('put a duration into every bucket that it does not exceed', async () => {
    const route = metrics.forRoute('api');
    for (const durationMs of [0.4, 1, 60_000, 60_001]) {
      route.started();
      route.ended(asked('GET'), 200, durationMs, 'http1');
    }
    const name = 'token_sidecar_proxy_request_duration_seconds';
    const after = await lines();
    expect(after).toContain(`# TYPE ${name} histogram`);
    for (const [bound, count] of [
      ['0.001', 2],
      ['0.0025', 2],
      ['30', 2],
      ['60', 3],
      ['+Inf', 4],
    ]) {
      expect(after).toContain(`${name}_bucket{le="${bound}",route="api",code="2xx"} ${count}`);
    }
    expect(after).toContain(`${name}_count{route="api",code="2xx"} 4`);
    const sum = after.find((line) => line.startsWith(`${name}_sum{route="api",code="2xx"}`));
    expect(Number(sum?.split(' ').at(-1))).toBeCloseTo(120.0024);
  });

  it('continue counting after they were read', async () => {
    const route = metrics.forRoute('api');
    const line = 'token_sidecar_proxy_requests_total{route="api",method="POST",code="503"}';
    route.refused(asked('POST'), 503, 1);
    expect(await lines()).toContain(`${line} 1`);
    expect(await lines()).toContain(`${line} 1`);
    route.refused(asked('POST'), 503, 1);
    expect(await lines()).toContain(`${line} 2`);
  });

  it('have no label values that clients can choose', async () => {
    for (const method of ['get', 'PROPFIND', 'X"}']) {
      metrics.forRoute('none').refused(asked(method), 404, 1);
    }
    expect(await lines()).toContain(
      'token_sidecar_proxy_requests_total{route="none",method="_OTHER",code="404"} 3',
    );
  });

  it.each(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'TRACE'])(
    'label the method %s',
    async (method) => {
      metrics.forRoute('api').refused(asked(method), 204, 1);
      expect(await lines()).toContain(
        `token_sidecar_proxy_requests_total{route="api",method="${method}",code="204"} 1`,
      );
    },
  );

  it('count requests by version of HTTP from the app and to the upstream', async () => {
    const route = metrics.forRoute('api');
    const name = 'token_sidecar_proxy_requests_by_protocol_total';
    const series = async () => (await lines()).filter((line) => line.startsWith(`${name}{`)).sort();
    expect(await series()).toEqual([]);
    for (const [protocol, upstream] of [
      ['http1', 'http1'],
      ['http1', 'h2'],
      ['h2', 'h2'],
      ['h2', 'h2'],
      ['h2', 'http1'],
      ['h2', undefined],
    ] as const) {
      route.started();
      route.ended(asked('GET', protocol), 200, 1, upstream);
    }
    route.refused(asked('GET'), 503, 1);
    const expected = [
      `${name}{route="api",protocol="h2",upstream_protocol="h2"} 2`,
      `${name}{route="api",protocol="h2",upstream_protocol="http1"} 1`,
      `${name}{route="api",protocol="h2",upstream_protocol="none"} 1`,
      `${name}{route="api",protocol="http1",upstream_protocol="h2"} 1`,
      `${name}{route="api",protocol="http1",upstream_protocol="http1"} 1`,
      `${name}{route="api",protocol="http1",upstream_protocol="none"} 1`,
    ];
    expect(await series()).toEqual(expected);
    expect(await series()).toEqual(expected);
    route.turnedAway('bad_request', 400, 'h2');
    expect(await series()).toContain(`${name}{route="api",protocol="h2",upstream_protocol="none"} 2`);
    expect(await lines()).toContain(
      'token_sidecar_proxy_requests_total{route="api",method="GET",code="200"} 6',
    );
  });

  it('count gRPC calls by status, with only the codes of gRPC', async () => {
    const route = metrics.forRoute('api');
    const name = 'token_sidecar_proxy_grpc_calls_total';
    const series = async () => (await lines()).filter((line) => line.startsWith(`${name}{`));
    expect(await series()).toEqual([]);
    for (const status of [0, 0, 16, 'other', 'other', undefined] as const) route.grpcEnded(status);
    const expected = [
      `${name}{route="api",grpc_status="0"} 2`,
      `${name}{route="api",grpc_status="16"} 1`,
      `${name}{route="api",grpc_status="other"} 2`,
      `${name}{route="api",grpc_status="none"} 1`,
    ];
    expect(await series()).toEqual(expected);
    expect(await series()).toEqual(expected);
    for (let status = 0; status <= 16; status++) route.grpcEnded(status);
    expect(await series()).toHaveLength(19);
    expect(await series()).toContain(`${name}{route="api",grpc_status="0"} 3`);
  });

  it('have totals for each route', () => {
    const [api, other] = [metrics.forRoute('api'), metrics.forRoute('other')];
    for (let request = 0; request < 3; request++) api.started();
    api.ended(asked('GET'), 200, 1, 'http1');
    api.refused(asked('GET'), 400, 1);
    api.error('bad_request');
    for (const status of [0, 5, undefined]) api.grpcEnded(status);
    other.started();
    other.ended(asked('GET'), 200, 1, 'http1');
    expect(Object.fromEntries(metrics.stats())).toMatchObject({
      api: { total: 2, inFlight: 2, errors: 1, grpc: { calls: 3, failures: 1 } },
      other: { total: 1, inFlight: 0, errors: 0, grpc: { calls: 0, failures: 0 } },
    });
  });

  it('have statuses, durations, errors and refused tokens of a route between scrapes', async () => {
    const api = metrics.forRoute('api');
    const request = (status: number, durationMs: number): void => {
      api.started();
      api.ended(asked('GET'), status, durationMs, 'http1');
    };
    request(200, 1);
    await lines();
    request(204, 3);
    request(499, 30_000);
    request(502, 90_000);
    api.error('upstream_timeout');
    api.error('upstream_timeout');
    api.upstreamUnauthorized();
    const stats = metrics.stats().get('api');
    expect(stats?.classes).toEqual([0, 0, 2, 0, 1, 1]);
    expect([...(stats?.errorsByCode ?? [])]).toEqual([['upstream_timeout', 2]]);
    expect(stats?.refusedTokens).toBe(1);
    expect(stats?.durations).toEqual([1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1]);
    await lines();
    expect(metrics.stats().get('api')).toEqual(stats);
  });

  it('count errors, 401s and replays by route', async () => {
    const route = metrics.forRoute('api');
    route.error('upstream_timeout');
    route.upstreamUnauthorized();
    route.replayed('failure');
    route.replayed('success');
    route.replayed('success');
    const after = await lines();
    expect(after).toContain('token_sidecar_proxy_errors_total{route="api",error="upstream_timeout"} 1');
    expect(after).toContain('token_sidecar_proxy_upstream_unauthorized_total{route="api"} 1');
    expect(after).toContain('token_sidecar_proxy_replays_total{route="api",result="failure"} 1');
    expect(after).toContain('token_sidecar_proxy_replays_total{route="api",result="success"} 2');
    // What has not happened has no series: there are thirty codes, for each route.
    expect(after.join()).not.toContain('error="internal"');
  });

  it('have durations by status class, only for classes that occurred', async () => {
    const route = metrics.forRoute('api');
    for (const status of [101, 200, 204, 404, 499, 502]) {
      route.started();
      route.ended(asked('GET'), status, 10, 'http1');
    }
    const name = 'token_sidecar_proxy_request_duration_seconds_count';
    const counts = (await lines()).filter((line) => line.startsWith(name));
    expect(counts).toEqual([
      `${name}{route="api",code="1xx"} 1`,
      `${name}{route="api",code="2xx"} 2`,
      `${name}{route="api",code="4xx"} 2`,
      `${name}{route="api",code="5xx"} 1`,
    ]);
  });

  it('have the upstream’s own time and the cost of its connections', async () => {
    const route = metrics.forRoute('api');
    metrics.forRoute('idle');
    route.upstreamAnswered(30);
    route.connectionOpened();
    route.connectionOpened();
    route.connectionSecured(false);
    route.connectionSecured(true);
    const after = await lines();
    const name = 'token_sidecar_proxy_upstream';
    expect(after).toContain(`${name}_duration_seconds_bucket{le="0.025",route="api"} 0`);
    expect(after).toContain(`${name}_duration_seconds_bucket{le="0.05",route="api"} 1`);
    expect(after).toContain(`${name}_duration_seconds_sum{route="api"} 0.03`);
    expect(after).toContain(`${name}_connections_total{route="api"} 2`);
    expect(after).toContain(`${name}_tls_handshakes_total{route="api",resumed="false"} 1`);
    expect(after).toContain(`${name}_tls_handshakes_total{route="api",resumed="true"} 1`);
    expect(after.join()).not.toMatch(/upstream_(duration|connections|tls)\w+\{[^}]*idle/);
  });

  it('are 0 before anything happens', async () => {
    metrics.forRoute('api');
    const before = await lines();
    expect(before).toContain('token_sidecar_proxy_upstream_unauthorized_total{route="api"} 0');
    for (const result of ['success', 'failure']) {
      expect(before).toContain(`token_sidecar_proxy_replays_total{route="api",result="${result}"} 0`);
    }
  });

  it('have no upstream series for requests without a route', async () => {
    metrics.forRoute('none').refused(asked('GET'), 404, 1);
    const after = (await lines()).join('\n');
    expect(after).toContain('token_sidecar_proxy_requests_total{route="none",method="GET",code="404"} 1');
    expect(after).not.toMatch(/^token_sidecar_proxy_(upstream|replays)\w+\{[^}]*route="none"/m);
  });

  it('give the same series to the same route', () => {
    expect(metrics.forRoute('api')).toBe(metrics.forRoute('api'));
  });
});
